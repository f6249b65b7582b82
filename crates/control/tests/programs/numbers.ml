(* As numbers.c, through OCaml's standard output: prints numbered lines, with pauses if the second argument is not 0, until it is
   killed. The shared file that the first argument names holds the number of complete lines. *)
let () =
  let file = Unix.openfile Sys.argv.(1) [ Unix.O_RDWR ] 0 in
  let complete =
    Bigarray.array1_of_genarray
      (Unix.map_file file Bigarray.int64 Bigarray.c_layout true [| 1 |])
  in
  let every = int_of_string Sys.argv.(2) in
  let number = ref 0 in
  while true do
    let n = !number in
    if n mod 97 = 0 then Printf.printf "%d %s\n" n (String.make 1500 'x')
    else if n mod 3 > 0 then Printf.printf "%d a line that ends here\n" n
    else String.iter (output_char stdout) (string_of_int n ^ " by its characters\n");
    incr number;
    complete.{0} <- Int64.of_int !number;
    if every > 0 && n mod every = 0 then Unix.sleepf 0.0002;
    if every > 0 && n mod (37 * every) = 0 then flush stdout
  done
