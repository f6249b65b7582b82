# Loaded by Tcl under `weir run` instead of its own init.tcl, which it sources after it has set up standard output.
if {[info exists env(WEIR_HOOK)]} {
    switch -glob -- $env(WEIR_HOOK) {
        line    { fconfigure stdout -buffering line }
        full    { fconfigure stdout -buffering full -buffersize 65536 }
        full:*  { fconfigure stdout -buffering full -buffersize [string range $env(WEIR_HOOK) 5 end] }
        default { fconfigure stdout -buffering none }
    }
}
if {[info exists env(WEIR_TCL_LIBRARY)]} {
    set tcl_library $env(WEIR_TCL_LIBRARY)
} else {
    set tcl_library [::tcl::pkgconfig get scriptdir,runtime]
}
source [file join $tcl_library init.tcl]
