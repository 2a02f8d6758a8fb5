import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { findPackages, root } from '../workspace.ts'

/** Every page whose snippets are checked: the README files and the docs. */
export function findPages(): string[] {
  const docs = join(root, 'docs')
  const pages = [
    join(root, 'README.md'),
    ...['bench', 'examples', 'conformance'].map((folder) => join(root, folder, 'README.md')),
    ...findPackages().map(({ folder }) => join(folder, 'README.md')),
  ]
  const inDocs = existsSync(docs)
    ? readdirSync(docs, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.md'))
        .map((file) => join(docs, file))
    : []
  return [...pages, ...inDocs].filter((page) => existsSync(page))
}

/** Whether people paste from a page: then each of its snippets shows what it imports. */
export function isPasted(page: string): boolean {
  const docs = join(root, 'docs')
  if (page === join(root, 'README.md')) return true
  return page.startsWith(docs) && !page.startsWith(join(docs, 'decisions'))
}
