#!/usr/bin/env bash
# Runs a test binary in a throw-away QEMU guest with a Soft-RoCE device, prints
# what it prints and exits as it does. Nothing of it needs root or RDMA hardware.
#
#   softroce.sh BINARY [ARGS...]
#
# Needs: qemu-system-x86 busybox-static kmod cpio xz-utils zstd iproute2 ibverbs-providers,
# and apt-get for a Debian kernel, once; it is kept in $SOFTROCE_CACHE (~/.cache/ostro-softroce).
set -euo pipefail

cache=${SOFTROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ostro-softroce}
limit=${SOFTROCE_SECONDS:-110}
modules="udp_tunnel ip6_udp_tunnel configfs ib_core ib_cm iw_cm rdma_cm ib_uverbs rdma_ucm crc32_generic rdma_rxe dummy"
PATH=$PATH:/usr/sbin:/sbin
die() { echo "softroce: $*" >&2; exit 125; }

[ $# -gt 0 ] || die "no binary given"
for tool in qemu-system-x86_64 busybox cpio xz zstd rdma ip dpkg-deb; do
	command -v $tool >/dev/null || die "$tool is missing"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"

# The kernel: Debian's, as the uncompressed image that QEMU boots without a BIOS.
if [ ! -e "$cache/complete" ]; then
	depends=$(apt-cache depends --important linux-image-6.12-amd64)
	[[ $depends =~ Depends:\ (linux-image-[0-9][^[:space:]]*) ]] || die "apt knows no linux-image-6.12-amd64; try apt-get update"
	package=${BASH_REMATCH[1]}
	(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$package") || die "$package cannot be downloaded"
	mkdir "$work/deb"
	dpkg-deb -x "$work"/linux-image-*.deb "$work/deb"
	image=$(echo "$work"/deb/boot/vmlinuz-*)
	word() { od -An -tu4 -j"$1" -N4 "$image" | tr -d ' '; } # Of the boot protocol's header.
	setup=$(od -An -tu1 -j497 -N1 "$image" | tr -d ' ')
	at=$(( (setup + 1) * 512 + $(word 584) ))
	dd if="$image" of="$work/payload" bs=1M skip=$at count=$(($(word 588) - 4)) iflag=skip_bytes,count_bytes status=none
	case $(od -An -tx1 -N4 "$work/payload" | tr -d ' ') in
	28b52ffd) zstd -dcq "$work/payload" >"$cache/vmlinux" ;;
	fd377a58) xz -dc --single-stream "$work/payload" >"$cache/vmlinux" ;;
	*) die "the kernel is compressed in an unknown way" ;;
	esac
	for name in $modules; do
		find "$work/deb" -name "$name.ko*" | while read -r file; do
			case $file in
			*.xz) xz -dc "$file" ;;
			*.zst) zstd -dcq "$file" ;;
			*) cat "$file" ;;
			esac >"$cache/$name.ko"
		done
	done
	[ -s "$cache/rdma_rxe.ko" ] || die "the kernel has no rdma_rxe"
	touch "$cache/complete"
fi

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
binary=$(realpath "$1"); shift
printf '%q ' "$binary" "$@" >"$root/command"
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
timeout -s QUIT $limit sh /command >/dev/ttyS1 2>&1
echo "softroce-exit \$?" >/dev/ttyS1
reboot -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$work/initrd"

timeout -s KILL $((limit + 30)) qemu-system-x86_64 -accel tcg,thread=multi -M pc,hpet=off -cpu max -smp 2 -m 1024 \
	-nodefaults -no-user-config -display none -no-reboot \
	-chardev file,id=console,path="$work/console" -device isa-serial,chardev=console \
	-chardev file,id=out,path="$work/out" -device isa-serial,chardev=out \
	-kernel "$cache/vmlinux" -initrd "$work/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable no_timer_check" </dev/null || :
sed '/^softroce-exit /d' "$work/out"
code=$(sed -n 's/^softroce-exit //p' "$work/out")
[ -n "$code" ] || { tail -20 "$work/console" >&2; die "the guest ended without a word"; }
exit "$code"
