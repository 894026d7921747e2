#!/bin/sh
# Copies a data folder, also while a server writes to it: backup.sh DATA COPY
#
# The manifest of an agent is copied first, so that the copy has everything that was committed when it began. Files that leave
# the manifest meanwhile stay for server.query_timeout (60 s), and linking the sealed ones takes no longer than listing them.
set -eu

if [ $# -ne 2 ] || [ ! -d "$1" ]; then
    echo "usage: backup.sh DATA COPY (DATA is a data folder, COPY is not there yet)" >&2
    exit 2
fi
data=$1
copy=$2
if [ -e "$copy" ]; then
    echo "backup.sh: $copy is there already" >&2
    exit 1
fi

# Sealed files never change, so that a link is as good as a copy; on another file system they are copied.
link_or_copy() {
    cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2/$(basename "$1")"; cp -a "$1" "$2"; }
}

for agent in "$data"/*/; do
    name=$(basename "$agent")
    mkdir -p "$copy/$name"
    # The older of the two may go at any moment.
    until cp -a "$agent"manifest-* "$copy/$name/" 2>/dev/null; do
        [ -n "$(ls "$agent" | grep '^manifest-')" ] || continue 2
        rm -f "$copy/$name"/manifest-*
    done
    for part in "$agent"hot "$agent"rejected; do
        [ ! -d "$part" ] || cp -a "$part" "$copy/$name/" 2>/dev/null || cp -a "$part" "$copy/$name/"
    done
    for day in "$agent"dt=*; do
        [ ! -d "$day" ] || link_or_copy "$day" "$copy/$name"
    done
done
