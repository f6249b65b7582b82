/* shared_types.c: compiled by build.rs for its BTF only, from which the Rust side of events.h is generated. */
#include "events.h"

union shared_types shared_types;
