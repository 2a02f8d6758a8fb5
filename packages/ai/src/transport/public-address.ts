/**
 * False for hosts inside this machine or network, as far as their name tells: private, loopback,
 * link-local and reserved addresses, and names that only mean something inside. For addresses that a
 * response, not the caller, asks to fetch.
 */
export function isPublicAddress(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  if (host.startsWith('[')) return isPublicV6(host.slice(1, -1))
  // URL has already turned every way of writing an IPv4 address into four numbers.
  const parts = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host)
  if (parts) return isPublicV4(Number(parts[1]), Number(parts[2]), Number(parts[3]))
  return host.includes('.') && !/\.(local|localhost|internal|lan|home|corp|intranet)$/.test(host)
}

function isPublicV4(a: number, b: number, c: number): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false
  if (a === 100 && b >= 64 && b <= 127) return false
  if (a === 169 && b === 254) return false
  if (a === 172 && b >= 16 && b <= 31) return false
  if (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)))) return false
  if (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) return false
  return !(a === 203 && b === 0 && c === 113)
}

/** Only global unicast, 2000::/3, without the ranges that carry an IPv4 address inside. */
function isPublicV6(address: string): boolean {
  return /^[23]/.test(address) && !/^(2001:0?0?0?0?:|2001:db8:|2002:|64:ff9b:)/.test(address)
}
