import type { Cause, Role } from '../api/types';
import { words } from './index.svelte';

const plural = (n: number, one: string, many: string) => (n === 1 ? one : many);

interface Common {
  nav: { now: string; sessions: string; users: string; attendance: string; system: string; label: string };
  places: { find: string; menu: string; skip: string };
  live: { live: string; polling: string; connecting: string; away: (since: string) => string; awayShort: string; help: string };
  theme: { title: string; system: string; light: string; dark: string };
  language: string;
  signOut: string;
  signedInAs: (name: string) => string;
  roles: Record<Role, string>;
  zone: (zone: string) => string;
  zoneHint: string;
  zoneOf: (zone: string, offset: string) => string;
  units: { s: string; min: string; h: string; d: string; y: string; gap: string };
  ago: (span: string) => string;
  in: (span: string) => string;
  justNow: string;
  never: string;
  causes: Record<Cause, string>;
  none: string;
  close: string;
  cancel: string;
  more: string;
  copy: string;
  copied: string;
  again: string;
  loading: string;
  error: { title: string; offline: string; forbidden: string; what: (detail: string, code: string) => string };
  notAllowed: (needs: Role) => string;
  sessions: (n: string, count: number) => string;
  users: (n: string, count: number) => string;
  help: string;
  docs: string;
  notFound: string;
  backToNow: string;
}

const en: Common = {
  nav: { now: 'Now', sessions: 'Sessions', users: 'Users', attendance: 'Attendance', system: 'System', label: 'Places' },
  places: { find: 'Find a user, session, address…', menu: 'Appearance and account', skip: 'Skip to the content' },
  live: {
    live: 'live',
    polling: 'every 5 s',
    connecting: 'connecting',
    away: (since) => `away since ${since}, trying`,
    awayShort: 'away',
    help: 'How this page hears of changes',
  },
  theme: { title: 'Theme', system: 'System', light: 'Light', dark: 'Dark' },
  language: 'Language',
  signOut: 'Sign out',
  signedInAs: (name) => (name ? `Signed in with ${name}` : 'Signed in'),
  roles: { reader: 'reader', writer: 'writer', admin: 'admin' },
  zone: (zone) => zone,
  zoneHint: 'All times and days are those of the server’s time zone.',
  zoneOf: (zone, offset) => (zone === 'UTC' ? 'In the server’s time zone, UTC.' : `In the server’s time zone, ${zone} (${offset}).`),
  units: { s: 's', min: 'min', h: 'h', d: 'd', y: 'y', gap: ' ' },
  ago: (span) => `${span} ago`,
  in: (span) => `in ${span}`,
  justNow: 'just now',
  never: 'never',
  causes: {
    logout: 'logged out',
    kicked: 'kicked',
    replaced: 'replaced',
    expired: 'went idle',
    lifetime: 'reached its end',
    banned: 'banned',
    erased: 'erased',
  },
  none: 'none',
  close: 'Close',
  cancel: 'Cancel',
  more: 'More',
  copy: 'Copy',
  copied: 'Copied',
  again: 'Try again',
  loading: 'Loading',
  error: {
    title: 'That did not work.',
    offline: 'The server does not answer. What is shown may be old. It is tried again by itself.',
    forbidden: 'Your sign-in may not see this.',
    what: (detail, code) => `${detail || 'No more is known.'} (${code})`,
  },
  notAllowed: (needs) => `This takes the role ${needs}.`,
  sessions: (n, count) => `${n} ${plural(count, 'session', 'sessions')}`,
  users: (n, count) => `${n} ${plural(count, 'user', 'users')}`,
  help: 'Keyboard',
  docs: 'API documentation',
  notFound: 'There is no such place.',
  backToNow: 'Go to Now',
};

const zh: Common = {
  nav: { now: '此刻', sessions: '会话', users: '用户', attendance: '活跃', system: '系统', label: '导航' },
  places: { find: '查找用户、会话、地址……', menu: '外观与账号', skip: '跳到正文' },
  live: {
    live: '实时',
    polling: '每 5 秒',
    connecting: '连接中',
    away: (since) => `${since} 起失去连接，重试中`,
    awayShort: '已断开',
    help: '本页如何获知变化',
  },
  theme: { title: '主题', system: '跟随系统', light: '浅色', dark: '深色' },
  language: '语言',
  signOut: '退出登录',
  signedInAs: (name) => (name ? `当前密钥：${name}` : '已登录'),
  roles: { reader: '只读', writer: '读写', admin: '管理员' },
  zone: (zone) => zone,
  zoneHint: '所有时间与日期均按服务器所在时区显示。',
  zoneOf: (zone, offset) => (zone === 'UTC' ? '按服务器时区 UTC 填写。' : `按服务器时区 ${zone}（${offset}）填写。`),
  units: { s: '秒', min: '分钟', h: '小时', d: '天', y: '年', gap: ' ' },
  ago: (span) => `${span}前`,
  in: (span) => `${span}后`,
  justNow: '刚刚',
  never: '从未',
  causes: {
    logout: '主动退出',
    kicked: '踢下线',
    replaced: '被新登录顶替',
    expired: '闲置超时',
    lifetime: '时长到限',
    banned: '封禁',
    erased: '数据抹除',
  },
  none: '无',
  close: '关闭',
  cancel: '取消',
  more: '更多',
  copy: '复制',
  copied: '已复制',
  again: '重试',
  loading: '加载中',
  error: {
    title: '操作未成功。',
    offline: '服务器没有响应，当前内容可能已过时，系统会自动重试。',
    forbidden: '当前账号无权查看此内容。',
    what: (detail, code) => `${detail || '没有更多信息。'}（${code}）`,
  },
  notAllowed: (needs) => `需要${{ reader: '只读', writer: '读写', admin: '管理员' }[needs]}权限。`,
  sessions: (n) => `${n} 个会话`,
  users: (n) => `${n} 位用户`,
  help: '快捷键',
  docs: 'API 文档',
  notFound: '没有这个页面。',
  backToNow: '回到“此刻”',
};

export const common = words(en, zh);
