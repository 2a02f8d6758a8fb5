/**
 * How the index of the search is made and asked. The build, the page and the tests use the same functions, because they
 * must agree.
 */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'url'],
  tokenize,
  processTerm: stem,
}

/** Searches the index. A page that explains something is before the names that it mentions. */
export function search(index, text) {
  const query = toQuery(text)
  if (query.queries.length === 0) return []
  const name = text.trim()
  return index.search(query, {
    tokenize: (word) => [word],
    processTerm: (word) => word, // `toQuery` has done both
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 4 ? 0.15 : false),
    boost: { title: 5, page: 3 },
    boostDocument: (_, __, document) => weightOf(document, name),
  })
}

/** What the pages below an address are worth; the first that fits counts. */
const WEIGHTS = [
  [/^(?:project|decisions|reference)\//, 0.2],
  [/^(?:conformance|bench|vendor-bodies|model-settings|status|soak)\b/, 0.3],
  [/^errors\./, 0.5],
  [/^examples\//, 0.5],
  [/^guides\//, 3],
  [/^migrate\//, 1.5],
  [/^packages\//, 1],
]
const OTHER_PAGES = 2

function weightOf({ url, title, page }, name) {
  // A name in code, e.g. `defineAgent` or `THREAD_BUSY`, is looked for where it is described.
  if (title === name && /[a-z][A-Z]|_/.test(name)) return 20
  const weight = WEIGHTS.find(([pattern]) => pattern.test(url))?.[1] ?? OTHER_PAGES
  return title === page ? weight * 2 : weight
}

/** What people type, and the words of the pages for it, which are searched as well. */
const SYNONYMS = [
  ['auth', 'authentication', 'authorization', 'sso'],
  ['tenants', 'multi tenant', 'multitenant', 'multi tenancy', 'multitenancy'],
  ['observability', 'tracing', 'trace', 'otel', 'monitoring'],
  ['telemetry', 'tracing', 'trace', 'otel', 'opentelemetry', 'observability', 'monitoring'],
  ['upgrade', 'update', 'migration'],
  ['approvals', 'human in the loop', 'hitl', 'human approval', 'confirmation'],
  [
    'retrieval',
    'rag',
    'vector',
    'vector store',
    'vector database',
    'knowledge base',
    'embeddings',
    'semantic search',
  ],
  ['testing', 'vitest', 'jest', 'mock', 'evals', 'evaluation'],
  ['structured output', 'json mode', 'json output', 'structure'],
  ['deploying', 'docker', 'dockerfile', 'container', 'kubernetes', 'production'],
  ['sub agents', 'subagent', 'multi agent', 'multiagent'],
  ['costs', 'price', 'pricing', 'budget', 'spending'],
  ['tools', 'zod', 'valibot', 'arktype', 'function calling'],
  ['vendors', 'openai', 'anthropic', 'claude', 'gemini', 'ollama', 'provider'],
  ['timers', 'cron', 'schedule'],
  ['chat', 'usechat'],
  ['signing', 'sign in', 'sign users in', 'login'],
  [
    'first five minutes',
    'getting started',
    'get started',
    'quickstart',
    'quick start',
    'hello world',
  ],
  ['approvals', 'guardrails', 'guardrail'],
  ['time limit', 'timeout'],
  ['streaming', 'sse', 'server sent events'],
  ['command', 'cli', 'command line'],
].map(([words, ...typed]) => ({ words: wordsOf(words), typed: typed.map(wordsOf) }))

/** Words that say nothing about what is looked for. */
const STOP_WORDS = new Set(
  'a an and are can do does for from how i in is it my of on or the to use using what with'.split(
    ' ',
  ),
)

/** Makes a query: all words must be found, each as it is or by another name. */
function toQuery(text) {
  const words = wordsOf(text)
  const queries = []
  for (let at = 0; at < words.length;) {
    const synonyms = synonymsAt(words, at)
    const length = synonyms[0]?.phrase.length ?? 1
    const names = [words.slice(at, at + length), ...synonyms.map((synonym) => synonym.words)]
    const options = names
      .map((name) => name.filter((word) => !STOP_WORDS.has(word)))
      .filter((name) => name.length > 0)
      .map((name) => ({ combineWith: 'AND', queries: name }))
    if (options.length > 0) queries.push({ combineWith: 'OR', queries: options })
    at += length
  }
  return { combineWith: 'AND', queries }
}

/** The synonyms of the longest phrase that begins here, so that `human in the loop` is one thing. */
function synonymsAt(words, at) {
  const matches = SYNONYMS.flatMap((entry) =>
    entry.typed
      .filter((phrase) => phrase.every((word, index) => words[at + index] === word))
      .map((phrase) => ({ phrase, words: entry.words })),
  )
  const longest = Math.max(...matches.map(({ phrase }) => phrase.length))
  return matches.filter(({ phrase }) => phrase.length === longest)
}

/** The words of a query or a phrase, with the stem of each; `multi-tenant` is two. */
function wordsOf(text) {
  return (text.match(/[\p{L}\p{N}_$@]+/gu) ?? []).map(stem)
}

/** Words; a name like `defineAgent` or `INPUT_INVALID` also by its parts. */
function tokenize(text) {
  return (text.match(/[\p{L}\p{N}_$@]+/gu) ?? []).flatMap((word) => {
    const parts = word.split(/_|(?<=[a-z\d])(?=[A-Z])/).filter((part) => part !== '')
    return parts.length > 1 ? [word, ...parts] : [word]
  })
}

/**
 * The stem of an English word, so that `upgrade` finds `Upgrading` and `agent` finds `agents`. It need not be a word; it
 * only has to be the same for the forms of one.
 */
export function stem(term) {
  const word = term.toLowerCase()
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word
  const root = withoutEnding(singular(word)).replace(/([bdgmnprt])\1$/, '$1')
  return root.length > 4 ? root.replace(/e$/, '') : root
}

function singular(word) {
  if (/(?:ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return /(?:x|ch|sh|ss|z)es$/.test(word) ? word.slice(0, -2) : word.replace(/s$/, '')
}

/** Without `-ing`, `-ed` and `-ation`, unless too little would be left, as of `string` and `embed`. */
function withoutEnding(word) {
  const [, verb] = /^(.*[aeiouy].*)(?:ing|(?<=.{4})ed)$/.exec(word) ?? []
  return verb !== undefined && verb.length > 2
    ? verb
    : word.replace(/(?<=.{3})at(?:ion|or)$/, 'ate')
}
