/** The facts about a vendor that are available without loading its module. */
export interface VendorEntry {
  /** The provider name, as used in errors and as the namespace of metadata. */
  readonly name: string
  /** The vendor's module is imported from `@skein/ai/<entry>`. */
  readonly entry: string
  /** Environment variables that may hold the key; the first one set is used. Empty: no key is needed. */
  readonly keyVariables: readonly string[]
  /** The address used without `config.baseUrl`; undefined if the caller must set one. */
  readonly baseUrl: string | undefined
}

/**
 * All vendors in this package, for code that must list them without loading them: the command `skein doctor`,
 * the table in the README, tests. A test compares each row with its vendor's module and the rows with the
 * package's exports.
 */
export const vendors: readonly VendorEntry[] = [
  row('anthropic', 'https://api.anthropic.com/v1', 'ANTHROPIC_API_KEY'),
  row('openai', 'https://api.openai.com/v1', 'OPENAI_API_KEY'),
  row(
    'google',
    'https://generativelanguage.googleapis.com/v1beta',
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'GOOGLE_GENERATIVE_AI_API_KEY',
  ),
  row('bedrock', 'https://region-is-not-set.invalid', 'AWS_BEARER_TOKEN_BEDROCK'),
  row('vertex', 'https://project-is-not-set.invalid'),
  row('ollama', 'http://127.0.0.1:11434/api'),
  row('openrouter', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
  row('groq', 'https://api.groq.com/openai/v1', 'GROQ_API_KEY'),
  row('xai', 'https://api.x.ai/v1', 'XAI_API_KEY'),
  row('deepseek', 'https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'),
  row('mistral', 'https://api.mistral.ai/v1', 'MISTRAL_API_KEY'),
  row('cerebras', 'https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY'),
  row('moonshot', 'https://api.moonshot.ai/v1', 'MOONSHOT_API_KEY'),
  row('azure-openai', undefined, 'AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'),
  row('openai-compatible', undefined),
]

/** Makes one row, with the vendor's name as its entry. */
function row(name: string, baseUrl: string | undefined, ...keyVariables: string[]): VendorEntry {
  return { name, entry: name, keyVariables, baseUrl }
}
