#![no_main]

weir_fuzz::walker_target!(weir_walkers::fuzzing::libcxx);
