/** How long ago something was, in one unit. */
export function timeAgo(at: number, now: number = Date.now()): string {
  const seconds = Math.max(Math.round((now - at) / 1000), 0)
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}
