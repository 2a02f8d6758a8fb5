import { safeJson, safeText } from '@skein/base/safe-text'
import type { ThreadView, ViewItem } from '@skein/runtime/view'

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
h1{font-size:1.3rem}article{border-top:1px solid #8884;padding:.6rem 0}header,footer{color:#888;font-size:.85em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}`

/**
 * Writes a view as one HTML file without scripts and without links to other files, in which every text
 * is escaped, so that it can be kept or sent to someone.
 */
export function viewHtml(view: ThreadView, title: string): string {
  const { agent, threadId, createdAt, updatedAt, status, usage, items, waiting } = view
  const cost = usage.costUsd === null ? 'cost unknown' : `${usage.costUsd.toFixed(4)} USD`
  const sum = `${usage.inputTokens} tokens read, ${usage.outputTokens} written, ${cost}`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${htmlLine(title)}</title><style>${STYLE}</style></head><body>
<h1>${htmlLine(title)}</h1>
<header>${htmlLine(`${agent}, ${status}, ${createdAt} to ${updatedAt}, thread ${threadId}`)}</header>
${items.map(itemHtml).join('\n')}
${waiting.map((wait) => article(`waits for ${wait.for} since ${wait.since}`, wait.reason ?? wait.toolName ?? '')).join('\n')}
<footer>${htmlLine(sum)}</footer>
</body></html>
`
}

const MARKS = { pending: 'not checked yet', refused: 'not delivered' } as const

function itemHtml(item: ViewItem): string {
  switch (item.type) {
    case 'message': {
      const { from, agentId, userId, at, text, media, attachments, delivery } = item
      const who = from === 'user' ? (userId ?? 'user') : (agentId ?? 'agent')
      const extra = [...media, ...attachments].map((one) => `\n[${one}]`).join('')
      const mark = delivery && delivery !== 'delivered' ? `, ${MARKS[delivery]}` : ''
      return article(`${who}, ${at}${mark}`, `${text}${extra}`)
    }
    case 'call': {
      const { toolName, at, state, arguments: args, result } = item
      const answer = result === undefined ? '' : `\n${safeJson(result)}`
      return article(`${toolName} (${state}), ${at}`, `${safeJson(args)}${answer}`)
    }
    case 'note':
      return article(item.at, item.text)
  }
}

function article(head: string, text: string): string {
  return `<article><header>${htmlLine(head)}</header><pre>${escaped(safeText(text))}</pre></article>`
}

function htmlLine(text: string): string {
  return escaped(safeText(text, { isLine: true }))
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)!};`)
}
