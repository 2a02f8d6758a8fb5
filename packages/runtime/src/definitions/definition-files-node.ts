import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { Reads } from './load/gather.ts'

/** A file that should hold one definition. */
export interface DefinitionFile {
  readonly kind: keyof Reads
  readonly path: string
  /** Relative to the folder that was searched, with forward slashes. */
  readonly file: string
  /** Relative to the folder of its kind, without the ending: `orders/[id].get`. */
  readonly stem: string
}

/** Where definitions of each kind live. */
export const FOLDERS: Readonly<Record<string, keyof Reads>> = {
  agents: 'agent',
  prompts: 'prompt',
  models: 'model',
  tools: 'tool',
  hooks: 'hook',
  effects: 'effect',
  endpoints: 'endpoint',
}

/** All definition files beneath a folder, in a fixed order. */
export async function findDefinitionFiles(folder: string): Promise<readonly DefinitionFile[]> {
  const lists = await Promise.all(
    Object.entries(FOLDERS).map(async ([name, kind]) => {
      const root = join(folder, name)
      const paths = await listFiles(root)
      return paths.map((path) => ({
        kind,
        path,
        file: slashes(relative(folder, path)),
        stem: slashes(relative(root, path)).replace(ending, ''),
      }))
    }),
  )
  return lists.flat()
}

const ending = /\.(?:ts|js|mjs)$/
const ignored = /(?:\.d|\.test|\.test-d|\.spec)\.[a-z]+$/

async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return [] // every folder is optional
    throw error
  })
  const lists = await Promise.all(
    entries
      .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) return listFiles(path)
        return ending.test(entry.name) && !ignored.test(entry.name) ? [path] : []
      }),
  )
  return lists.flat()
}

function slashes(path: string): string {
  return path.split(sep).join('/')
}
