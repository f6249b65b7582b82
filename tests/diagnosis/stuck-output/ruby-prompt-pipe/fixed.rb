require 'socket'

server, client = UNIXSocket.pair
Thread.new { sleep 1.4; server.puts 'done' } # in place of a server
print 'asking the server '
$stdout.flush
client.wait_readable
puts client.gets
