let () =
  let out = open_out "squares.txt" in
  for i = 1 to 1000 do
    if i * i > 10000 then (
      Printf.eprintf "%d is too large\n%!" i;
      Unix._exit 1);
    Printf.fprintf out "%d %d\n" i (i * i)
  done
