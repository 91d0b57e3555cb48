#!/usr/bin/env bash
# Installs a built quorate under a prefix, or removes what was installed there:
#   install.sh BINARY PREFIX      install.sh --remove PREFIX
#
# Symbols go to PREFIX/bin/.debug, where gdb and the backtrace of a panic look by themselves; a
# place such as PREFIX/lib/debug both would have to be told of. The binary takes the place of an
# older one by a rename, so nodes that run go on with theirs until they are started again.
set -eu

[ $# -eq 2 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
prefix=$2
bash_dir=$prefix/share/bash-completion/completions
zsh_dir=$prefix/share/zsh/site-functions
fish_dir=$prefix/share/fish/vendor_completions.d
man_dir=$prefix/share/man/man1

remove_pages() {
  # Only names that begin so are ours.
  rm -f "$man_dir"/quorate.1 "$man_dir"/quorate-*.1
}

if [ "$1" = --remove ]; then
  rm -f "$prefix/bin/quorate" "$prefix/bin/.debug/quorate.debug"
  rm -f "$bash_dir/quorate" "$zsh_dir/_quorate" "$fish_dir/quorate.fish"
  remove_pages
  [ ! -d "$prefix/bin/.debug" ] || rmdir --ignore-fail-on-non-empty "$prefix/bin/.debug"
  echo "Removed quorate from $prefix. Data directories are where they were."
  exit 0
fi

binary=$1
mkdir -p "$prefix/bin/.debug" "$bash_dir" "$zsh_dir" "$fish_dir" "$man_dir"
new=$(mktemp "$prefix/bin/.quorate.XXXXXX")
trap 'rm -f "$new"' EXIT
objcopy --only-keep-debug "$binary" "$prefix/bin/.debug/quorate.debug"
chmod 644 "$prefix/bin/.debug/quorate.debug"
objcopy --strip-all --add-gnu-debuglink="$prefix/bin/.debug/quorate.debug" "$binary" "$new"
chmod 755 "$new"
mv -f "$new" "$prefix/bin/quorate"

"$prefix/bin/quorate" completions bash > "$bash_dir/quorate"
"$prefix/bin/quorate" completions zsh > "$zsh_dir/_quorate"
"$prefix/bin/quorate" completions fish > "$fish_dir/quorate.fish"
remove_pages
"$prefix/bin/quorate" man "$man_dir"

echo "Installed $prefix/bin/quorate, completions for bash, zsh and fish, and man pages."
case "${SHELL:-}" in
  */zsh) echo "zsh finds the completions with this before compinit in ~/.zshrc: fpath+=('$zsh_dir')" ;;
esac
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "$prefix/bin is not on your PATH. For this shell, and in ~/.profile for the next ones:"
     echo "  export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
