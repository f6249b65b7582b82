(* As program.py. *)
let () =
  let log = open_out "log" in
  for i = 0 to 1 do
    Printf.printf "out %d\n" i;
    Printf.fprintf log "log %d\n" i
  done;
  close_out (open_out "ready");
  if Array.length Sys.argv > 1 then Unix.kill (Unix.getpid ()) Sys.sigkill;
  Unix.sleep 60;
  close_out log
