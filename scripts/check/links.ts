import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { headingsOf, linksOf } from '../docs/markdown.ts'
import { findPages } from '../snippets/pages.ts'

/** Every page whose links are checked: those with snippets, and the pages at the root. */
export function linkedPages(workspace: string): string[] {
  const atRoot = ['AGENTS.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
  return [...findPages(), ...atRoot.map((name) => join(workspace, name))].filter(existsSync)
}

/**
 * Links that lead nowhere: a file that does not exist, an anchor that its page does not have, or an address of
 * another site that is not `https:`. Other sites are not asked.
 */
export function findLinkProblems(workspace: string, pages: readonly string[]): string[] {
  const anchors = new Map<string, ReadonlySet<string>>()
  const anchorsOf = (file: string): ReadonlySet<string> => {
    const known = anchors.get(file)
    if (known) return known
    const found = new Set(headingsOf(readFileSync(file, 'utf8')).map(({ slug }) => slug))
    anchors.set(file, found)
    return found
  }
  return pages.flatMap((page) =>
    linksOf(readFileSync(page, 'utf8')).flatMap(({ href }) => {
      const problem = problemOf(page, href, anchorsOf)
      return problem === undefined ? [] : [`${relative(workspace, page)}: ${href} ${problem}`]
    }),
  )
}

function problemOf(
  page: string,
  href: string,
  anchorsOf: (file: string) => ReadonlySet<string>,
): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(href))
    return /^(?:https:\/\/[\w-]+(?:\.[\w-]+)+(?:[/?#]|$)|mailto:)/.test(href)
      ? undefined
      : 'is not an https: address.'
  if (href.startsWith('/')) return 'is not relative to its page.'
  const [path = '', anchor] = href.split('#')
  const file = path === '' ? page : join(dirname(page), decodeURIComponent(path))
  if (!existsSync(file)) return 'does not exist.'
  if (anchor === undefined || !file.endsWith('.md')) return undefined
  return anchorsOf(file).has(decodeURIComponent(anchor)) ? undefined : 'names no heading.'
}
