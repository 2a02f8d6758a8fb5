import { join } from 'node:path'
import { format } from 'prettier'
import type { AcceptedSettings } from '../../packages/ai/src/contract/accepted-settings.ts'
import { claudeRules } from '../../packages/ai/src/catalog/accepted/anthropic.ts'
import { geminiRules, needsInteractions } from '../../packages/ai/src/catalog/accepted/google.ts'
import { mistralRules } from '../../packages/ai/src/catalog/accepted/mistral.ts'
import { gptRules } from '../../packages/ai/src/catalog/accepted/openai.ts'
import { ruleOf, type AcceptedRule } from '../../packages/ai/src/catalog/accepted/rule.ts'
import { acceptedSources } from '../../packages/ai/src/catalog/accepted/sources.ts'
import { grokRules } from '../../packages/ai/src/catalog/accepted/xai.ts'
import { modelCatalog } from '../../packages/ai/src/catalog/catalog.ts'
import { anthropicMessages } from '../../packages/ai/src/wires/anthropic-messages/wire.ts'
import { googleGenerate } from '../../packages/ai/src/wires/google-generate/wire.ts'
import { googleInteractions } from '../../packages/ai/src/wires/google-interactions/wire.ts'
import { openaiParameters, writeChat } from '../../packages/ai/src/wires/openai-chat/settings.ts'
import { openaiResponses } from '../../packages/ai/src/wires/openai-responses/wire.ts'
import type { WireSettings, WrittenSettings } from '../../packages/ai/src/wires/wire.ts'
import { root } from '../workspace.ts'

/** The page with the table. */
export const page: string = join(root, 'docs', 'model-settings.md')

type Accepts = (modelId: string) => AcceptedSettings

/** The families whose models have rules, and how their settings are written. */
const families: readonly {
  readonly vendor: string
  readonly rules: readonly AcceptedRule[]
  readonly write: (settings: WireSettings, modelId: string, accepts: Accepts) => WrittenSettings
}[] = [
  {
    vendor: 'anthropic',
    rules: claudeRules,
    write: (settings, modelId, accepts) =>
      anthropicMessages.writeSettings!(settings, {
        provider: 'anthropic',
        modelId,
        dialect: { maxTokens: 4096, accepts },
      }),
  },
  { vendor: 'openai', rules: gptRules, write: responses },
  {
    vendor: 'google',
    rules: geminiRules,
    write: (settings, modelId, accepts) =>
      (needsInteractions(modelId) ? googleInteractions : googleGenerate).writeSettings!(settings, {
        provider: 'google',
        modelId,
        dialect: { accepts },
      }),
  },
  { vendor: 'xai', rules: grokRules, write: chat },
  { vendor: 'mistral', rules: mistralRules, write: chat },
]

function responses(settings: WireSettings, modelId: string, accepts: Accepts): WrittenSettings {
  const toolCallId = { pattern: /^[^]+$/, maxLength: 64 }
  const dialect = { media: [], toolCallId, accepts }
  return openaiResponses.writeSettings!(settings, { provider: 'openai', modelId, dialect })
}

function chat(settings: WireSettings, modelId: string, accepts: Accepts): WrittenSettings {
  return writeChat(settings, { modelId, dialect: { parameters: openaiParameters, accepts } })
}

/** The settings of the columns. */
const columns: readonly (readonly [title: string, settings: WireSettings])[] = [
  ["`'off'`", { reasoning: 'off' }],
  ["`'low'`", { reasoning: 'low' }],
  ["`'high'`", { reasoning: 'high' }],
  ['`{ budget: 2048 }`', { reasoning: { budget: 2048 } }],
  ['`temperature`', { temperature: 0.5 }],
  ['and `topP`', { temperature: 0.5, topP: 0.9 }],
  ["`temperature` with `'high'`", { temperature: 0.5, reasoning: 'high' }],
  ['forced call', { toolChoice: 'required' }],
  ['`stop`', { stop: 'END' }],
]

/** Writes what one setting becomes: the parameters, `nothing`, and `⚠` where the turn gets a warning. */
function cell({ params, dropped, notes = [] }: WrittenSettings): string {
  const text = JSON.stringify(params).slice(1, -1).replaceAll('"', '')
  const warning = dropped.length > 0 || notes.length > 0 ? ' ⚠' : ''
  return `${text === '' ? 'nothing' : `\`${text}\``}${warning}`
}

/** The whole page, as prettier leaves it. Models of one rule share a row. */
export function modelSettingsPage(): Promise<string> {
  const sections = families.map(({ vendor, rules, write }) => {
    const accepts: Accepts = (modelId) => ruleOf(rules, modelId).accepts
    const prefix = `${vendor}/`
    const ids = Object.keys(modelCatalog)
      .filter((key) => key.startsWith(prefix))
      .map((key) => key.slice(prefix.length))
    const rows = rules.map((rule, index) => {
      const isLast = index === rules.length - 1
      const own = ids.filter((id) => ruleOf(rules, id) === rule)
      const example = own[0] ?? (isLast ? 'newer-model' : undefined)
      const names = [...own, ...(isLast ? ['every other model'] : [])].join(', ')
      return { rule, names, example }
    })
    const lines = rows.flatMap(({ rule, names, example }) => {
      if (names === '') return []
      const cells = columns.map(([, settings]) => cell(write(settings, example!, accepts)))
      const limit = rule.accepts.maxOutputTokens?.toLocaleString('en') ?? '–'
      return [`| ${[names, ...cells, limit, [...rule.sources].join(' ')].join(' | ')} |`]
    })
    const titles = ['models', ...columns.map(([title]) => title), 'output limit', 'sources']
    const head = [`| ${titles.join(' | ')} |`, `| ${titles.map(() => '---').join(' | ')} |`]
    return `## ${vendor}\n\n${[...head, ...lines].join('\n')}\n`
  })
  const sources = Object.entries(acceptedSources).map(
    ([letter, { address, date, kind }]) => `| ${letter} | ${address} | ${kind} | ${date} |`,
  )
  const text = `---
title: Settings by model
---

# What each model accepts

Written by \`node scripts/model-settings.ts\` from the rules in \`packages/ai/src/catalog/accepted\`; a test compares the two. The
rules are also in the column \`accepts\` of \`modelCatalog\`. A cell shows the parameters that one setting becomes, \`nothing\`
where none is sent, and ⚠ where the turn gets a warning (\`setting_dropped\` or \`setting_adjusted\`). The first five columns
are values of \`reasoning\` and \`temperature: 0.5\`. OpenAI's rows show Responses, which has no \`stop\`; in Chat Completions
the names are \`reasoning_effort\` and \`max_completion_tokens\`.

\`params\` are not part of this: they are sent as they are, and win over settings. A model that no row names gets the rule of
the newest models of its vendor. No vendor was reachable while this was written: the rules come from the sources at the end of
this page, pages of vendors in excerpts. *unverified* marks a rule without a source, which takes the most careful reading.

${sections.join('\n')}
## Sources

| | source | kind | read |
| --- | --- | --- | --- |
${sources.join('\n')}
`
  return format(text, { parser: 'markdown', semi: false, singleQuote: true, printWidth: 100 })
}
