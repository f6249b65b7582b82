<?php
for ($i = 0; $i < 60000; $i++) {
    file_put_contents('log', "line $i\n", FILE_APPEND);
}
