"""Clock and power of the card while it trains, by NVML (no package needed)."""

import ctypes
import os
import threading
import time

SM_CLOCK = 1  # nvmlClockType_t
BETWEEN_LOOKS = 0.1


class Sensors:
    """Everything is left out where NVML or the card is not to be had."""

    def __init__(self, torch):
        self.nvml = self.handle = self.thread = None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if nvml.nvmlInit_v2() != 0:
            return
        handle = ctypes.c_void_p()
        if self.find(nvml, torch, handle):
            self.nvml, self.handle = nvml, handle

    @staticmethod
    def find(nvml, torch, handle):
        """The card that PyTorch calls 0, whatever CUDA_VISIBLE_DEVICES says."""
        uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
        if uuid is not None:
            name = f"GPU-{uuid}".encode()
            return nvml.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)) == 0
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        if not visible.isdigit():
            return False
        return nvml.nvmlDeviceGetHandleByIndex_v2(int(visible), ctypes.byref(handle)) == 0

    def number(self, call, *arguments, kind=ctypes.c_uint):
        """What a getter gives; None where the card has no such thing."""
        if self.nvml is None:
            return None
        value = kind()
        status = getattr(self.nvml, call)(self.handle, *arguments, ctypes.byref(value))
        return value.value if status == 0 else None

    def joules(self):
        value = self.number("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)
        return None if value is None else value * 1e-3

    def watts(self):
        value = self.number("nvmlDeviceGetPowerUsage")
        return None if value is None else value * 1e-3

    def conditions(self):
        out = {}
        if self.nvml is None:
            return {"clocks and power": "not known: libnvidia-ml.so.1 could not be used"}
        text = ctypes.create_string_buffer(96)
        if self.nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            out["driver"] = text.value.decode()
        limit = self.number("nvmlDeviceGetEnforcedPowerLimit")
        if limit is not None:
            out["power limit"] = f"{limit * 1e-3:.0f} W"
        return out

    def start(self):
        self.clocks, self.powers, self.over = [], [], threading.Event()
        self.energy, self.began = self.joules(), time.monotonic()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.over.wait(BETWEEN_LOOKS):
            self.clocks.append(self.number("nvmlDeviceGetClockInfo", SM_CLOCK))
            self.powers.append(self.watts())

    def stop(self):
        """Mean power and clock since start(). The energy counter is exact where power readings are
        means over up to a second."""
        elapsed, energy = time.monotonic() - self.began, self.joules()
        self.over.set()
        self.thread.join()
        out = {"sm_mhz": mean(self.clocks), "gpu_power_w": mean(self.powers)}
        if energy is not None and self.energy is not None and energy > self.energy:
            out["gpu_power_w"] = (energy - self.energy) / elapsed
        return {key: round(value, 1) for key, value in out.items() if value is not None}


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
