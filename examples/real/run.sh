#!/usr/bin/env bash
# Two workers in processes of their own change a published crate and prove the change; at the end the
# branch is in the crate's repository and holds what was asked for.
#
#   examples/real/run.sh [DIR]     DIR is kept; without it a temporary folder is used and removed.
#
# Needs cargo and git, and the package registry once. GANGER names another build of the program.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
crate="strsim"
version="0.11.1"

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work="$(cd "$1" && pwd)"
    kept=yes
else
    work="$(mktemp -d)"
    kept=no
fi

started=()
finish() {
    local code=$?
    for pid in "${started[@]}"; do
        kill -TERM "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    if [ "$code" -ne 0 ]; then
        tail -n 20 "$work"/*.log 2>/dev/null || true
    fi
    [ "$kept" = yes ] || rm -rf "$work"
    exit "$code"
}
trap finish EXIT

say() { printf '== %s\n' "$*"; }
fail() { printf '== FAILED: %s\n' "$*" >&2; exit 1; }

# wait_for WHAT COMMAND...: until the command succeeds, at most a minute.
wait_for() {
    local what="$1" until=$((SECONDS + 60))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || fail "no $what after a minute"
        sleep 0.1
    done
}

# The crate as it was published, committed into a repository of its own.
fetch_crate() {
    mkdir -p "$work/fetch/src"
    : > "$work/fetch/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n%s = "=%s"\n\n[workspace]\n' \
        "$crate" "$version" > "$work/fetch/Cargo.toml"
    (cd "$work/fetch" && cargo vendor --quiet vendor >/dev/null)
    cp -R "$work/fetch/vendor/$crate" "$work/crate"
    rm -f "$work/crate/.cargo-checksum.json" "$work/crate/Cargo.lock"
    printf '/target\nCargo.lock\n' > "$work/crate/.gitignore"
    git -C "$work/crate" init --quiet --initial-branch=main
    commit "$work/crate" "strsim as published"
}

commit() {
    git -C "$1" add --all
    git -C "$1" -c user.name=example -c user.email=example@localhost commit --quiet --message "$2"
}

endpoint() {
    grep -oE '127\.0\.0\.1:[0-9]+' "$work/coordinator/endpoint" | head -n 1
}

start() {
    local log="$work/$1.log"
    shift
    "$ganger" "$@" >"$log" 2>&1 &
    started+=("$!")
}

# Both workers have registered.
both_ready() {
    local workers
    workers="$("$ganger" get workers -o json "${client[@]}")"
    grep -q '"one"' <<<"$workers" && grep -q '"two"' <<<"$workers"
}

# The branch in the user's own repository holds the change, and the change holds.
prove() {
    local branch
    branch="$(git -C "$work/crate" for-each-ref --format='%(refname:short)' 'refs/heads/ganger/*')"
    [ "$(wc -l <<<"$branch")" -eq 1 ] && [ -n "$branch" ] || fail "one branch expected, found: $branch"
    git -C "$work/crate" worktree add --quiet --detach "$work/result" "$branch"
    local changed expected
    changed="$(git -C "$work/crate" diff --name-only main "$branch" | sort | tr '\n' ' ')"
    expected="README.md src/lib.rs tests/normalized_hamming.rs "
    [ "$changed" = "$expected" ] || fail "changed $changed, expected $expected"
    grep -q '^pub fn normalized_hamming' "$work/result/src/lib.rs" || fail "the function is not there"
    grep -q normalized_hamming "$work/result/README.md" || fail "the README does not name it"
    (cd "$work/result" && cargo test --quiet --offline) || fail "the tests do not pass on the branch"
    say "$branch holds the change and its tests pass"
}

ganger="${GANGER:-$root/target/debug/ganger}"
[ -x "$ganger" ] || (cd "$root" && cargo build --quiet --bin ganger)

# What the attempts may see of the toolchain, by name; the plan lets these three through.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}"
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
if [ -z "${RUSTUP_TOOLCHAIN:-}" ] && command -v rustup >/dev/null; then
    RUSTUP_TOOLCHAIN="$(cd "$root" && rustup show active-toolchain | cut -d' ' -f1)"
fi
export RUSTUP_TOOLCHAIN="${RUSTUP_TOOLCHAIN:-stable}"
export XDG_STATE_HOME="$work/state"
unset GANGER_SERVER

say "fetching $crate $version"
fetch_crate
cp "$here/plan.yaml" "$work/plan.yaml"

say "starting a coordinator and two workers"
start coordinator coordinator --listen 127.0.0.1:0 --data "$work/coordinator"
wait_for "coordinator" endpoint
server="http://$(endpoint)"
client=(--server "$server" --token-file "$work/coordinator/operator.token")
for name in one two; do
    start "$name" worker --server "$server" --name "$name" --slots 2 --data "$work/worker-$name" \
        --token-file "$work/coordinator/worker-join.token"
done
wait_for "two workers" both_ready

say "running the plan"
(cd "$work" && "$ganger" run plan.yaml "${client[@]}")
prove
