import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './workspace.ts'

/** A throw-away copy of the repository, for changes that must never touch the working tree. */
export interface WorkspaceCopy {
  readonly folder: string
  remove(): void
}

/**
 * Copies every file git knows or would add, or those of them that are wanted; installed packages are
 * linked, ours to the copy. Peers that are installed already are linked too: otherwise `npm test` in the copy
 * would first install all of them again.
 */
export function copyWorkspace(isWanted: (path: string) => boolean = () => true): WorkspaceCopy {
  const folder = mkdtempSync(join(tmpdir(), 'skein-copy-'))
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const files = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).split('\0')
  for (const file of files.filter((name) => name !== '' && isWanted(name))) {
    if (!existsSync(join(root, file))) continue
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  linkModules(folder)
  const peers = join(root, '.cache')
  mkdirSync(peers, { recursive: true })
  symlinkSync(peers, join(folder, '.cache'))
  return {
    folder,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function linkModules(folder: string): void {
  const source = join(root, 'node_modules')
  const target = join(folder, 'node_modules')
  mkdirSync(join(target, '@skein'), { recursive: true })
  for (const name of readdirSync(source)) {
    if (name !== '@skein' && name !== '.vite') symlinkSync(join(source, name), join(target, name))
  }
  for (const name of readdirSync(join(folder, 'packages'))) {
    symlinkSync(join(folder, 'packages', name), join(target, '@skein', name))
    const nested = join(root, 'packages', name, 'node_modules')
    if (existsSync(nested)) symlinkSync(nested, join(folder, 'packages', name, 'node_modules'))
  }
}
