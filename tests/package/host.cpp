// A program that knows nothing of Lockstep but a shared object which holds it.
extern "C" int layers_of_a_preset();

int main() { return layers_of_a_preset() == 32 ? 0 : 1; }
