(* Threads write numbered lines to one file and flush it, while others compute: so a thread often waits for the master lock between its
   write and the note of it. The arguments are the file and the number of lines of each thread. *)
let file = open_out_gen [ Open_append; Open_creat ] 0o600 Sys.argv.(1)
let lines = int_of_string Sys.argv.(2)
let lock = Mutex.create ()
let ended = ref false

let write thread =
  for number = 0 to lines - 1 do
    Mutex.lock lock;
    output_string file (Printf.sprintf "%d %d a line that ends here\n" thread number);
    Mutex.unlock lock;
    if number mod 5 = 0 then flush file;
    if number mod 50 = 0 then Thread.delay 0.0005
  done

(* A thread gives the lock back where it allocates. *)
let compute () =
  let count = ref 0 in
  while not !ended do
    incr count;
    if !count mod 1000 = 0 then ignore (Sys.opaque_identity (Array.make 10 0))
  done

let () =
  let writers = List.map (Thread.create write) [ 0; 1; 2; 3 ] in
  let others = List.map (Thread.create compute) [ (); () ] in
  List.iter Thread.join writers;
  ended := true;
  List.iter Thread.join others;
  close_out file
