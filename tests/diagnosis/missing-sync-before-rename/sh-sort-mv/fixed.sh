sort words > words.new && sync words.new && mv words.new words && sync .
