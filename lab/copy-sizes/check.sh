sizes copy
