sort words > words.new && mv words.new words
