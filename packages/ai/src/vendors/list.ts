/** What is known about a vendor without loading its page. */
export interface VendorEntry {
  /** Provider name: in errors, and the namespace of metadata. */
  readonly name: string
  /** The page is imported from `@skein/ai/<entry>`. */
  readonly entry: string
  /** Environment variables that may hold the key, the first one set wins. Empty: no key is needed. */
  readonly keyVariables: readonly string[]
  /** Address unless `config.baseUrl` says otherwise; undefined where the caller must give one. */
  readonly baseUrl: string | undefined
}

/**
 * All shipped vendors. The one list for programs that must know them without loading them all: the
 * command's `doctor`, the table in the README, tests. A test compares each row with its page and
 * the rows with the exports of the package.
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

/** Entries are named after their vendor. */
function row(name: string, baseUrl: string | undefined, ...keyVariables: string[]): VendorEntry {
  return { name, entry: name, keyVariables, baseUrl }
}
