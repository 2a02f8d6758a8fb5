import type { JsonValue } from '@skein/base'
import type { WireName } from '../../contract/provider.ts'
import { anthropicRules, checkAnthropic } from './anthropic-messages.ts'
import { bedrockRules, checkBedrock } from './bedrock-converse.ts'
import { checkGoogle, googleRules } from './google-generate.ts'
import { checkInteractions, interactionsRules } from './google-interactions.ts'
import { checkOllama, ollamaRules } from './ollama-chat.ts'
import { checkOpenAIChat, openaiChatRules } from './openai-chat.ts'
import { checkOpenAIResponses, openaiResponsesRules } from './openai-responses.ts'
import { asObject, Report, type CheckOptions, type TranscriptIssue } from './report.ts'

export type { CheckOptions, TranscriptIssue } from './report.ts'

/** The rules that `checkTranscript` applies to each vendor format: the name of every rule and its explanation. */
export const transcriptRules: Readonly<Record<WireName, Readonly<Record<string, string>>>> = {
  'openai-chat': openaiChatRules,
  'openai-responses': openaiResponsesRules,
  'anthropic-messages': anthropicRules,
  'google-generate': googleRules,
  'google-interactions': interactionsRules,
  'bedrock-converse': bedrockRules,
  'ollama-chat': ollamaRules,
}

/**
 * Checks the body of a request against the rules of its vendor, and more strictly: it also reports
 * mistakes that only some servers of a format reject. Returns an empty list if nothing is wrong.
 *
 *     expect(checkTranscript('anthropic-messages', body)).toEqual([])
 */
export function checkTranscript(
  wire: WireName,
  body: JsonValue,
  options: CheckOptions = {},
): readonly TranscriptIssue[] {
  const request = asObject(body)
  switch (wire) {
    case 'openai-chat':
      return issues(openaiChatRules, options, (report) => checkOpenAIChat(request, report))
    case 'openai-responses':
      return issues(openaiResponsesRules, options, (report) =>
        checkOpenAIResponses(request, report),
      )
    case 'anthropic-messages':
      return issues(anthropicRules, options, (report) => checkAnthropic(request, report))
    case 'google-generate':
      return issues(googleRules, options, (report) => checkGoogle(request, report))
    case 'google-interactions':
      return issues(interactionsRules, options, (report) => checkInteractions(request, report))
    case 'bedrock-converse':
      return issues(bedrockRules, options, (report) => checkBedrock(request, report))
    case 'ollama-chat':
      return issues(ollamaRules, options, (report) => checkOllama(request, report))
    default:
      return wire satisfies never
  }
}

function issues<Rule extends string>(
  rules: Readonly<Record<Rule, string>>,
  options: CheckOptions,
  check: (report: Report<Rule>) => void,
): readonly TranscriptIssue[] {
  const report = new Report(rules, options)
  check(report)
  return report.issues
}
