import { readdir } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import type { DefinitionFile } from './definition-file.ts'
import type { Reads } from './definition-index.ts'

/** The folders of definitions, and the kind in each. */
export const FOLDERS: Readonly<Record<string, keyof Reads>> = {
  agents: 'agent',
  prompts: 'prompt',
  models: 'model',
  tools: 'tool',
  hooks: 'hook',
  effects: 'effect',
  endpoints: 'endpoint',
}

/** Finds all definition files below a folder, in a fixed order. */
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

/** Whether a file with this path would be loaded as a definition of the folder. */
export function isDefinitionFile(folder: string, path: string): boolean {
  const [first = '', ...rest] = relative(folder, resolve(path)).split(sep)
  const name = rest.at(-1)
  return (
    Object.hasOwn(FOLDERS, first) && name !== undefined && rest.every(isListed) && isSource(name)
  )
}

const ending = /\.(?:ts|js|mjs)$/

const otherFiles = /(?:\.d|\.test|\.test-d|\.spec)\.[a-z]+$/

async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return [] // every folder is optional
    throw error
  })
  const lists = await Promise.all(
    entries
      .filter(({ name }) => isListed(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) return listFiles(path)
        return isSource(entry.name) ? [path] : []
      }),
  )
  return lists.flat()
}

function isListed(name: string): boolean {
  return !name.startsWith('.') && name !== 'node_modules'
}

function isSource(name: string): boolean {
  return ending.test(name) && !otherFiles.test(name)
}

function slashes(path: string): string {
  return path.split(sep).join('/')
}
