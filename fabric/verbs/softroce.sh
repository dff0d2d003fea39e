#!/usr/bin/env bash
# Runs a test binary in a throw-away QEMU guest with a Soft-RoCE device, prints
# what it prints and exits as it does. Nothing of it needs root or RDMA hardware.
#
#   softroce.sh BINARY [ARGS...]   125 if the guest could not be had
#   softroce.sh --missing          the Debian packages that are not installed
#   softroce.sh --ready            whether all is there; if not, says what to do
#
# A Debian kernel is fetched once, by apt-get, and kept in $SOFTROCE_CACHE
# (~/.cache/ostro-softroce). A guest that does not come up in SOFTROCE_BOOT_SECONDS
# is booted once more; a binary gets SOFTROCE_SECONDS, and one chance.
set -euo pipefail

packages="qemu-system-x86 busybox-static cpio xz-utils zstd iproute2 ibverbs-providers libibverbs-dev gcc libc6-dev"
kernels="linux-image-6.12-amd64 linux-image-amd64" # The first that apt knows.
modules="udp_tunnel ip6_udp_tunnel configfs ib_core ib_cm iw_cm rdma_cm ib_uverbs rdma_ucm crc32_generic rdma_rxe dummy"
cache=${SOFTROCE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/ostro-softroce}
boot=${SOFTROCE_BOOT_SECONDS:-240} # Software emulation: 5 s on an idle machine, a minute on a loaded one.
limit=${SOFTROCE_SECONDS:-900}
PATH=$PATH:/usr/sbin:/sbin
die() { echo "softroce: $*" >&2; exit 125; }
work=$(mktemp -d)
qemu=
trap '[ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 125' INT TERM HUP

missing() {
	local package list=""
	for package in $packages; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)" = installed ] || list="$list $package"
	done
	echo "${list# }"
}

check_packages() {
	command -v dpkg-query >/dev/null || die "only on Debian and its like; it needs their packages $packages"
	[ "$(dpkg --print-architecture)" = amd64 ] || die "only on amd64"
	local list
	list=$(missing)
	[ -z "$list" ] || die "packages are missing: apt-get install --no-install-recommends $list"
}

# The kernel: Debian's, as the uncompressed image that QEMU boots without a BIOS.
# The cache is filled aside and moved into place: an interrupted one is never used.
fetch_kernel() {
	[ ! -e "$cache/complete" ] || return 0
	local meta package="" depends image setup at fresh=$work/fresh
	for meta in $kernels; do
		depends=$(apt-cache depends --important "$meta" 2>/dev/null) || continue
		if [[ $depends =~ Depends:\ (linux-image-[0-9][^[:space:]]*) ]]; then package=${BASH_REMATCH[1]}; break; fi
	done
	[ -n "$package" ] || die "apt knows none of $kernels: apt-get update"
	echo "softroce: fetching $package" >&2
	(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 "$package") || die "$package cannot be downloaded: apt-get update"
	mkdir "$work/deb" "$fresh"
	dpkg-deb -x "$work"/linux-image-*.deb "$work/deb"
	image=$(echo "$work"/deb/boot/vmlinuz-*)
	word() { od -An -tu4 -j"$1" -N4 "$image" | tr -d ' '; } # Of the boot protocol's header.
	setup=$(od -An -tu1 -j497 -N1 "$image" | tr -d ' ')
	at=$(( (setup + 1) * 512 + $(word 584) ))
	dd if="$image" of="$work/payload" bs=1M skip=$at count=$(($(word 588) - 4)) iflag=skip_bytes,count_bytes status=none
	case $(od -An -tx1 -N4 "$work/payload" | tr -d ' ') in
	28b52ffd) zstd -dcq "$work/payload" >"$fresh/vmlinux" ;;
	fd377a58) xz -dc --single-stream "$work/payload" >"$fresh/vmlinux" ;;
	*) die "the kernel is compressed in an unknown way" ;;
	esac
	unpack_modules "$fresh"
	[ -s "$fresh/rdma_rxe.ko" ] || die "$package has no rdma_rxe"
	mkdir -p "$cache"
	cp "$fresh"/* "$cache/"
	touch "$cache/complete"
	rm -rf "$work/deb" "$work"/*.deb "$work/payload" "$fresh"
}

unpack_modules() {
	local name file
	for name in $modules; do
		find "$work/deb" -name "$name.ko*" | while read -r file; do
			case $file in
			*.xz) xz -dc "$file" ;;
			*.zst) zstd -dcq "$file" ;;
			*) cat "$file" ;;
			esac >"$1/$name.ko"
		done
	done
}

case ${1:-} in
--missing) missing; exit ;;
--ready) check_packages; fetch_kernel; exit ;;
"" | -*) die "no binary given" ;;
esac
check_packages
fetch_kernel

# The guest's file system: busybox, the tools that make the device, the binary.
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc/libibverbs.d,usr/lib,usr/lib64,modules}
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
install() { # a program or library with all that it is linked to
	local file
	for file in "$1" $(ldd "$1" 2>/dev/null | grep -o '/[^ )]*'); do
		[ -e "$root$file" ] || { mkdir -p "$root$(dirname "$file")"; cp -L "$file" "$root$file"; }
	done
}
cp "$(command -v busybox)" "$root/bin/busybox"
for tool in rdma ip; do install "$(command -v $tool)"; ln -sf "$(command -v $tool)" "$root/bin/real-$tool"; done
for library in /usr/lib/*/libibverbs/librxe-rdmav*.so; do install "$library"; done
cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
cp "$cache"/*.ko "$root/modules/"
install "$(realpath "$1")"
cp -L "$1" "$root/subject" # Wherever it is here: the guest has a /tmp of its own.
shift
printf '%q ' /subject "$@" >"$root/command"
cat >"$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs d /dev; mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /tmp
stty -F /dev/ttyS1 raw -echo
ulimit -l unlimited
for m in $modules; do insmod /modules/\$m.ko 2>/dev/null; done
real-ip link set lo up
real-ip link set dummy0 mtu 9000 up; real-ip addr add 10.77.0.1/24 dev dummy0
real-rdma link add rxe0 type rxe netdev dummy0
[ -e /sys/class/infiniband/rxe0 ] || { echo "softroce-no-device" >/dev/ttyS1; reboot -f; }
echo "softroce-start" >/dev/ttyS1
timeout -s QUIT -k 10 $limit sh /command >/dev/ttyS1 2>&1
echo "softroce-exit \$?" >/dev/ttyS1
reboot -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$work/initrd"

# guest ends with 0 when the binary has ended, whatever its fate, with 1 when the
# guest never came so far as to start it.
guest() {
	: >"$work/out"
	qemu-system-x86_64 -accel tcg,thread=multi -M pc,hpet=off -cpu max -smp 2 -m 1024 \
		-nodefaults -no-user-config -display none -no-reboot \
		-chardev file,id=console,path="$work/console" -device isa-serial,chardev=console \
		-chardev file,id=out,path="$work/out" -device isa-serial,chardev=out \
		-kernel "$cache/vmlinux" -initrd "$work/initrd" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable no_timer_check" </dev/null &
	qemu=$!
	if ! within "$boot" grep -aq '^softroce-start' "$work/out"; then
		stop
		return 1
	fi
	within $((limit + 60)) grep -aq '^softroce-exit' "$work/out" || :
	within 10 false || : # The guest ends itself, having said all.
	stop
}

# within waits up to so many seconds for a condition, or for the guest's end.
within() {
	local until=$((SECONDS + $1))
	shift
	while [ $SECONDS -lt $until ] && kill -0 "$qemu" 2>/dev/null; do
		! "$@" || return 0
		sleep 0.2
	done
	"$@"
}

stop() {
	kill -KILL "$qemu" 2>/dev/null || :
	wait "$qemu" 2>/dev/null || :
	qemu=
}

if ! guest; then
	echo "softroce: the guest did not come up in $boot s; once more" >&2
	tail -n 5 "$work/console" "$work/out" >&2 || :
	guest || { tail -n 20 "$work/console" "$work/out" >&2 || :; die "the guest did not come up, twice; SOFTROCE_BOOT_SECONDS gives it longer"; }
fi
sed '/^softroce-/d' "$work/out"
code=$(sed -n 's/^softroce-exit \([0-9]*\).*/\1/p' "$work/out")
[ -n "$code" ] || { tail -n 20 "$work/console" >&2; die "the guest ended without a word about the binary"; }
exit "$code"
