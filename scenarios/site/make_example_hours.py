#!/usr/bin/env python3
"""Writes example-hours.csv: 60 days of made-up weather, tariff and carbon, with the change of clocks."""
import datetime
import math
import sys
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")


def row(utc: datetime.datetime) -> str:
    """One hour: its local time, and what a mild spring might have been like."""
    local = utc.astimezone(ZONE)
    day, hour = local.timetuple().tm_yday, local.hour
    turn = 2 * math.pi
    outside = 8 + 0.12 * (day - 74) + 5 * math.cos(turn * (hour - 15) / 24) + 2 * math.sin(turn * day / 9)
    sun = max(0.0, math.sin(turn * (hour - 6) / 24)) * (0.55 + 0.35 * math.sin(turn * day / 7))
    # Cheap at noon, when there is much sun: below zero on the brightest days. Dear in the evening.
    tariff = 85 - 150 * sun**2 + 45 * math.exp(-((hour - 19) / 2) ** 2)
    carbon = 420 - 300 * sun
    time = local.isoformat(timespec="minutes")
    return f"{time},{outside:.2f},{tariff:.2f},{carbon:.1f},{sun:.4f}"


def main() -> None:
    """To standard output."""
    first = datetime.datetime(2026, 3, 15, tzinfo=ZONE).astimezone(datetime.timezone.utc)
    lines = ["time,outside_celsius,usd_per_mwh,grams_per_kwh,solar_share"]
    lines += [row(first + datetime.timedelta(hours=h)) for h in range(60 * 24)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
