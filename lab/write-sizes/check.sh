sizes write
