let () =
  for i = 1 to 8 do
    Printf.printf "load %d.%d\n" (i mod 3) (i * 7 mod 10);
    flush stdout;
    Unix.sleepf 0.2
  done
