sizes copy --cache warm,cold
