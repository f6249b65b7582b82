<?php
$f = fopen('log', 'a');
for ($i = 0; $i < 60000; $i++) {
    fwrite($f, "line $i\n");
}
fclose($f);
