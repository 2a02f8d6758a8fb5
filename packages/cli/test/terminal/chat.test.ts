import { describe, expect, test } from 'vitest'
import { MarkdownWriter } from '../../src/terminal/markdown.ts'
import fc from 'fast-check'
import { badAgents, exampleAgents, skein, tempFolder } from '../kit.ts'
import { pty, Terminal } from './terminal.ts'

const timeout = 90_000
// oxlint-disable-next-line no-control-regex
const plain = (text: string): string => text.replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, '')

/** Writes a text in pieces, and returns what a terminal shows. */
function shown(pieces: readonly string[], columns = 40): string {
  let text = ''
  const output = {
    piece: (part: string) => void (text += part),
    paint: (_: string, part: string) => part,
  }
  const writer = new MarkdownWriter(output, columns)
  for (const piece of pieces) writer.push(piece)
  writer.end()
  return text
}

describe('Markdown in a terminal', () => {
  test('however the text arrives in pieces, the same is shown', () => {
    const part = fc.oneof(
      fc.constantFrom(
        '**',
        '*',
        '_',
        '`',
        '```\n',
        '# ',
        '- ',
        '1. ',
        '> ',
        '|',
        '\n',
        '\n\n',
        ' ',
      ),
      fc.string({ unit: 'grapheme', maxLength: 12 }),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.nat(), (parts, seed) => {
        const text = parts.join('')
        const cut = text === '' ? 0 : seed % text.length
        const characters = [...text]
        expect(shown(characters)).toBe(shown([text]))
        expect(shown([text.slice(0, cut), text.slice(cut)])).toBe(shown([text]))
      }),
      { numRuns: 300 },
    )
  })

  test('every word is shown, whole and in order, and rows are not wider than the terminal', () => {
    const word = fc.stringMatching(/^[a-z0-9äß]{1,15}$/)
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 60 }), (words) => {
        const text = shown([words.join(' ')])
        expect(text.split(/\s+/)).toEqual(words)
        for (const row of text.split('\n')) expect(row.length).toBeLessThan(40)
      }),
    )
  })

  test('wide characters count as two columns', () => {
    const rows = shown(['漢字 '.repeat(20)]).split('\n')
    for (const row of rows)
      expect([...row].filter((one) => one !== ' ').length * 2).toBeLessThan(40)
  })
})

describe.skipIf(typeof pty === 'string')('chat in a terminal', { timeout }, () => {
  test('wraps at words, shows Markdown simply, and says model and context', async () => {
    const chat = new Terminal(['chat', 'writer', '--folder', badAgents], { cwd: tempFolder() })
    await chat.until('/help lists commands')
    await chat.until('> ')
    chat.type('write\r')
    await chat.until('no emphasis.')
    await chat.until('context')
    await chat.until('> ')
    chat.type('\r')
    expect(await chat.ended).toBe(0)
    const text = plain(chat.output).replaceAll('\r', '')
    expect(text).toContain('\nA heading\n')
    expect(text).not.toContain('# A heading')
    expect(text).toContain('bold words, code and snake_case_names')
    expect(text).toContain('• first point')
    expect(text).toMatch(/\n {2}below the bullet|\n {2}\S.*the bullet\n/)
    expect(text).toContain('│ quoted')
    expect(text).toContain('**not bold**')
    expect(text).toContain('2 * 3 * 4 is no emphasis.')
    const start = text.indexOf('A paragraph')
    const paragraph = text.slice(start, text.indexOf('\n\n', start))
    expect(paragraph.split('\n').length).toBe(2)
    for (const row of paragraph.split('\n')) expect(row.length).toBeLessThan(100)
    expect(text).toContain('scripted/script · context')
  })

  test('a choice about a call: other text decides nothing, a denial asks for its reason', async () => {
    const cwd = tempFolder()
    const chat = new Terminal(['chat', 'refunds', '--folder', exampleAgents], { cwd })
    await chat.until('> ')
    chat.type('Please refund order O-7\r')
    await chat.until('Approve refund')
    await chat.until('undone by undo_refund')
    await chat.until('later > ')
    chat.type('what does that cost me?\r')
    await chat.until('Nothing was decided.')
    await chat.until('later > ')
    chat.type('/help\r')
    await chat.until('Nothing was decided.')
    await chat.until('later > ')
    chat.type('d\r')
    await chat.until('Reason')
    chat.type('\r')
    await chat.until('Nothing was decided.')
    await chat.until('later > ')
    chat.type('\r')
    await chat.until('> ')
    chat.type('/hlep\r')
    await chat.until('Did you mean /help? Nothing was sent.')
    await chat.until('> ')
    chat.type('/decide\r')
    await chat.until('Approve refund')
    await chat.until('later > ')
    chat.type('d\r')
    await chat.until('Reason')
    chat.type('past 30 days\r')
    await chat.until('done')
    await chat.until('> ')
    chat.type('/quit\r')
    expect(await chat.ended).toBe(0)
    // The question appears once, and the thread is named at the end alone.
    expect(chat.output).not.toContain('waiting for approval')
    expect(chat.output).not.toContain('skein approve')
    expect(plain(chat.output).match(/thread [\w-]{36}/g)).toHaveLength(1)
    const shownThread = await skein(['thread', 'list', '--json', '--folder', exampleAgents], {
      cwd,
    })
    const [thread] = (JSON.parse(shownThread.stdout) as { threads: { id: string }[] }).threads
    const details = await skein(['thread', 'show', thread!.id, '--folder', exampleAgents], { cwd })
    expect(details.stdout).toMatch(
      /^refund .*: denied by \S+: past 30 days \(undone by undo_refund/m,
    )
  })

  test('a chat that is left immediately leaves no thread behind; /new begins another one', async () => {
    const cwd = tempFolder()
    const left = new Terminal(['chat', 'writer', '--folder', badAgents], { cwd })
    await left.until('> ')
    left.type('\r')
    expect(await left.ended).toBe(0)
    const none = await skein(['thread', 'list', '--folder', badAgents], { cwd })
    expect(none.stderr).toContain('No threads yet.')
    const chat = new Terminal(['chat', 'writer', '--folder', badAgents], { cwd })
    for (const line of ['first words of mine', '/new', 'second words', '//slash']) {
      await chat.until('> ')
      chat.type(`${line}\r`)
      if (!line.startsWith('/n')) await chat.until('context')
    }
    await chat.until('> ')
    chat.type('/thread\r')
    await chat.until('> ')
    chat.type('/quit\r')
    await chat.ended
    const { stdout } = await skein(['thread', 'list', '--folder', badAgents], { cwd })
    expect(stdout.trim().split('\n')).toHaveLength(2)
    expect(stdout).toContain('first words of mine')
    expect(stdout).toContain('second words')
  })

  test('an unknown agent is named before anything is asked', async () => {
    const chat = new Terminal(['chat', 'wrtier', '--folder', badAgents], { cwd: tempFolder() })
    expect(await chat.ended).toBe(1)
    expect(chat.output).toContain('wrtier')
  })
})
