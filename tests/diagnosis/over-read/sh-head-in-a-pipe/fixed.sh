printf '%s\n' pear plum apple cherry fig | { IFS= read -r first; echo "$first"; sort; }
