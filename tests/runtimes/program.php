<?php
// As program.py. PHP has no buffer for the lines.
$log = fopen("log", "w");
for ($i = 0; $i < 2; $i++) {
    echo "out $i\n";
    fwrite($log, "log $i\n");
}
touch("ready");
if ($argc > 1) {
    shell_exec("kill -9 " . getmypid());
}
sleep(60);
