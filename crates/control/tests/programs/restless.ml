(* As restless.c, through OCaml's channels: writes output that only the seed determines, at a changing speed. The first argument
   is the mode: p plain, w with write(2), f and u with forks, s seeks, 2 two channels, t threads, e executes itself; the second
   the seed, the third the number of lines, the fourth a file for mode s. *)
let state = ref 0

let draw below =
  state := (!state * 25214903917) + 11;
  (!state lsr 20) mod below

let turn = ref 0

let compute seconds =
  let finish = Unix.gettimeofday () +. seconds in
  while Unix.gettimeofday () < finish do
    ()
  done

(* The kind of pause does not affect the output. *)
let idle microseconds =
  let pause = float_of_int microseconds /. 1e6 in
  incr turn;
  match !turn mod 4 with
  | 0 -> Unix.sleepf pause
  | 1 -> compute pause
  | 2 -> compute (pause /. 2.); Unix.sleepf (pause /. 2.)
  | _ -> ()

let line out number =
  let length = draw 60 in
  match draw 5 with
  | 0 -> Printf.fprintf out "%d %s\n" number (String.make length '7')
  | 1 ->
      for _ = 1 to length do output_char out (Char.chr (97 + draw 26)) done;
      output_char out '\n'
  | 2 -> output_string out (String.make length 'z'); output_byte out 10
  | 3 ->
      let length = if draw 8 = 0 then 1000 + (1400 * length) else length in
      output_string out (String.make length 'w' ^ "\n")
  | _ -> output_string out "the quick brown fox\n"

let write_now text = ignore (Unix.write_substring Unix.stdout text 0 (String.length text))

(* The child writes the bytes that are pending at the fork too, unless `clean` flushes them before. *)
let fork_child clean =
  let flushes = draw 2 = 0 in
  if flushes || clean then flush stdout;
  match Unix.fork () with
  | 0 ->
      if flushes then print_string "child\n";
      flush stdout;
      Unix._exit 0
  | child -> ignore (Unix.waitpid [] child)

let plain mode lines =
  for number = 1 to lines do
    line stdout number;
    if draw 12 = 0 then idle (draw 6000);
    if draw 40 = 0 then flush stdout;
    if mode = "w" && draw 30 = 0 then (flush stdout; write_now "without a buffer\n");
    if (mode = "f" || mode = "u") && draw 30 = 0 then fork_child (mode = "f")
  done

let seek path lines =
  let out = open_out_bin path in
  for number = 1 to lines do
    line out number;
    if draw 8 = 0 then (
      let at = pos_out out in
      seek_out out (at - draw (min at 5 + 1));
      Printf.printf "at %d\n" (pos_out out));
    (* Moves the file's position to its end and back. *)
    if draw 10 = 0 then ignore (out_channel_length out);
    if draw 4 = 0 then idle (draw 3000)
  done;
  close_out out;
  let input = open_in_bin path in
  print_string (really_input_string input (in_channel_length input))

let two lines =
  let second = Unix.out_channel_of_descr (Unix.dup Unix.stdout) in
  for number = 1 to lines do
    line stdout number;
    if draw 5 = 0 then (
      idle (draw 4000);
      flush stdout;
      line second number;
      idle (draw 4000);
      flush second)
  done

let threads lines =
  let print () =
    for number = 1 to lines do
      print_string "thread\n";
      if number mod 16 = 0 then Unix.sleepf 0.0005
    done
  in
  let all = List.init 2 (fun _ -> Thread.create print ()) in
  List.iter Thread.join all

let () =
  let mode = Sys.argv.(1) and lines = int_of_string Sys.argv.(3) in
  state := int_of_string Sys.argv.(2);
  match mode with
  | "s" -> seek Sys.argv.(4) lines
  | "2" -> two lines
  | "t" -> threads lines
  | "e" ->
      plain "p" lines;
      flush stdout;
      Unix.execv Sys.executable_name [| "restless"; "p"; Sys.argv.(2); Sys.argv.(3); "" |]
  | mode -> plain mode lines
