import { parseSync } from 'vite'

/**
 * Titles of the type tests that assert nothing. No one runs a type test, so the run cannot tell: it
 * must name a type that has to fit (`expectTypeOf`, `assertType`, `satisfies`, a declaration with a
 * type) or code that must not compile (`@ts-expect-error`).
 */
export function emptyTypeTests(path: string, text: string): string[] {
  const { program } = parseSync(path, text)
  const titles: string[] = []
  visit(program.body)
  return titles

  function visit(value: unknown): void {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== 'object' || value === null) return
    const node = value as Readonly<Record<string, unknown>>
    if (node['type'] === 'CallExpression') {
      const [title, body] = node['arguments'] as {
        type: string
        value?: unknown
        start: number
        end: number
      }[]
      const callee = node['callee'] as { readonly name?: string }
      if (/^(test|it)$/.test(callee.name ?? '') && typeof title?.value === 'string' && body) {
        const code = text.slice(body.start, body.end)
        if (!/expectTypeOf|assertType|@ts-expect-error|\bsatisfies\b|const \w+: /.test(code))
          titles.push(title.value)
      }
    }
    for (const key in node) if (key !== 'type') visit(node[key])
  }
}
