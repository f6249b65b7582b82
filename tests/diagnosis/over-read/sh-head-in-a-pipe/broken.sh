printf '%s\n' pear plum apple cherry fig | { head -n 1; sort; }
