// What a user agent says about browser and system: enough to tell devices apart, for
// the few that nearly everyone has. What is not known is shown as it came.

import type { IconName } from './components/Icon.svelte';

export interface Agent {
  browser: string;
  version: string;
  system: string;
  icon: IconName;
  device: IconName;
}

// The order matters: most browsers claim to be others too.
const browsers: [RegExp, string, IconName][] = [
  [/\b(?:Edg|EdgA|EdgiOS|Edge)\/(\d+)/, 'Edge', 'edge'],
  [/\b(?:OPR|OPiOS|Opera)\/(\d+)/, 'Opera', 'web'],
  [/\bSamsungBrowser\/(\d+)/, 'Samsung Internet', 'web'],
  [/\bMicroMessenger\/(\d+)/, 'WeChat', 'phone'],
  [/\bVivaldi\/(\d+)/, 'Vivaldi', 'web'],
  [/\bYaBrowser\/(\d+)/, 'Yandex', 'web'],
  [/\b(?:UCBrowser|UBrowser)\/(\d+)/, 'UC Browser', 'web'],
  [/\bMQQBrowser\/(\d+)/, 'QQ Browser', 'web'],
  [/\b(?:HuaweiBrowser)\/(\d+)/, 'Huawei Browser', 'web'],
  [/\bElectron\/(\d+)/, 'Electron', 'desktop'],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox', 'firefox'],
  [/\bHeadlessChrome\/(\d+)/, 'Headless Chrome', 'script'],
  [/\b(?:Chrome|CriOS|Chromium)\/(\d+)/, 'Chrome', 'chrome'],
  [/\bVersion\/(\d+)[\d.]*.*\bSafari\//, 'Safari', 'safari'],
  [/\bokhttp\/(\d+)/i, 'OkHttp', 'script'],
  [/\bcurl\/(\d+)/, 'curl', 'script'],
  [/\bWget\/(\d+)/, 'Wget', 'script'],
  [/\bGo-http-client\/(\d+)/, 'Go', 'script'],
  [/\bpython-(?:requests|urllib|httpx)\/(\d+)/i, 'Python', 'script'],
  [/\bDart\/(\d+)/, 'Dart', 'script'],
  [/\bCFNetwork\/(\d+)/, 'CFNetwork', 'script'],
  [/\bPostmanRuntime\/(\d+)/, 'Postman', 'script'],
];

const systems: [RegExp, string, IconName][] = [
  [/\biPad\b/, 'iPadOS', 'tablet'],
  [/\biPhone\b|\biPod\b/, 'iOS', 'phone'],
  [/\bHarmonyOS\b|\bOpenHarmony\b/, 'HarmonyOS', 'phone'],
  [/\bAndroid\b(?!.*\bMobile\b)/, 'Android', 'tablet'],
  [/\bAndroid\b/, 'Android', 'phone'],
  [/\bCrOS\b/, 'ChromeOS', 'desktop'],
  [/\bWindows\b/, 'Windows', 'desktop'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS', 'desktop'],
  [/\bLinux\b|\bX11\b/, 'Linux', 'desktop'],
];

const known = new Map<string, Agent>();

/** Reads a user agent; long ones are read as far as 512 characters. */
export function agentOf(text: string): Agent {
  const found = known.get(text);
  if (found) return found;
  const head = text.slice(0, 512);
  const agent: Agent = { browser: '', version: '', system: '', icon: 'web', device: 'desktop' };
  for (const [pattern, name, icon] of browsers) {
    const match = pattern.exec(head);
    if (match) {
      Object.assign(agent, { browser: name, version: match[1] ?? '', icon, device: icon === 'script' ? 'script' : 'desktop' });
      break;
    }
  }
  for (const [pattern, name, device] of systems) {
    if (pattern.test(head)) {
      Object.assign(agent, { system: name, device });
      break;
    }
  }
  if (!agent.browser && head) {
    // A program of one's own mostly begins with its name: ShopApp/5.2
    const own = /^([\w .-]{1,32}?)\/(\d+(?:\.\d+)?)/.exec(head);
    if (own?.[1] && own[1] !== 'Mozilla') Object.assign(agent, { browser: own[1], version: own[2] ?? '', icon: agent.system ? agent.device : 'script' });
  }
  if (known.size > 2000) known.clear();
  known.set(text, agent);
  return agent;
}
