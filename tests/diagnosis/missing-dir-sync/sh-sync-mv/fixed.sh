echo $(($(cat serial) + 1)) > serial.new
sync serial.new
mv serial.new serial
sync .
