import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { installPeers, linkPeers, peersOf } from '../peers.ts'
import { linkedPeers, type Group } from './groups.ts'

/** Installs what a group needs, where that was not done yet. Returns what npm printed where it failed. */
export async function installGroup({ peers }: Group): Promise<string | undefined> {
  for (const name of peers) {
    const failure = await installPeers(name)
    if (failure !== undefined) return failure
    if (linkedPeers.has(name)) linkPeers(name)
  }
  return undefined
}

/** The space that the packages of a group take. */
export function megabytesOf({ peers }: Group): number {
  const folders = peers.map((name) => peersOf(name).folder).filter((folder) => existsSync(folder))
  const [last] = execFileSync('du', ['-cskx', ...folders], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .toReversed()
  return Math.round(Number.parseInt(last ?? '0', 10) / 1024)
}
