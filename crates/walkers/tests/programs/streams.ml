(* Leaves bytes in OCaml's channels, writes a byte to stderr, waits until the file "end" exists, adds a tail to each and ends. *)
let () =
  Sys.chdir Sys.argv.(1);
  let text = open_out "text" in
  output_string text "part one, ";
  output_char text 'p';
  output_string text "art two";
  let flushed = open_out "flushed" in
  output_string flushed "all of it";
  flush flushed;
  let full = open_out "full" in
  for i = 0 to 65536 + 299 do
    output_char full (Char.chr (97 + (i mod 26)))
  done;
  let closed = open_out "closed" in
  output_string closed "closed";
  close_out closed;
  let input = open_in "input" in
  ignore (input_line input);
  print_string "in stdout";
  ignore (Unix.write_substring Unix.stderr "." 0 1);
  while not (Sys.file_exists "end") do
    Unix.sleepf 0.005
  done;
  output_string text (Printf.sprintf " tail at %d\n" (pos_out text));
  output_string full " tail\n";
  close_out flushed;
  print_string (" tail, " ^ input_line input ^ "\n")
