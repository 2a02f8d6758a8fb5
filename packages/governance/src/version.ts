/** True for the versions that are read: 0.2.x and 0.3.x (§9; before 1.0 a minor is a contract). */
export function isSupportedVersion(version: string): boolean {
  return /^0\.[23](?:\.(?:0|[1-9]\d*))?$/.test(version)
}
