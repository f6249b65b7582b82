traced kill "$PROGRAM" >file || true
seen "lines in the file" "$(lines file)"
if command -v c++ >/dev/null; then
    c++ -O1 -o records-cpp ../records.cc
    ./records-cpp "$VERSION" || true
    seen "records of a C++ program" "$(lines records)"
else
    seen "records of a C++ program" "not installed"
fi
