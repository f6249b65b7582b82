# sources.sh: the sources of the programs, from Debian 12's source packages. Read by run.
# shellcheck shell=bash disable=SC2154 # $work is set by run

# get_sources PACKAGE…: downloads what $work/sources does not have yet. Needs no root; the system's package lists do not
# change. Succeeds if something could be downloaded or nothing was missing.
get_sources() {
    local missing=() package private
    mkdir -p "$work/sources" "$work"/apt/{parts,lists/partial,cache/archives/partial}
    for package in "$@"; do
        compgen -G "$work/sources/${package}_*.orig.tar.*" >/dev/null || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian bookworm main" >"$work/apt/sources"
    private=(-o "Dir::Etc::sourcelist=$work/apt/sources" -o "Dir::Etc::sourceparts=$work/apt/parts"
        -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o "APT::Sandbox::User=$(id -un)")
    apt-get -qq "${private[@]}" update || return
    for package in "${missing[@]}"; do
        (cd "$work/sources" && apt-get -qq "${private[@]}" source --download-only "$package" 2>&1) |
            grep -v '^NOTICE\|^Please use\|^https:\|^git clone\|^to retrieve' || true
    done
}

# unpack PACKAGE FOLDER: the sources without Debian's patches. Fails if they were not downloaded.
unpack() {
    local archives=("$work/sources/$1"_*.orig.tar.[gxb]z*)
    [ -e "${archives[0]}" ] || return
    rm -rf "$2"
    mkdir -p "$2"
    tar -xf "${archives[0]}" -C "$2" --strip-components=1
}
