package demo

import "strings"

// place is where people have names of one custom.
type place struct {
	share         float64
	region        string
	between       string // the parts of a name
	familyFirst   bool
	given, family []part
}

// part is a part of a name, as it is written and in Latin letters without marks.
type part struct{ name, latin string }

// parts reads "name/latin" words; a word alone is both, in lower case.
func parts(text string) []part {
	var out []part
	for word := range strings.FieldsSeq(text) {
		name, latin, ok := strings.Cut(word, "/")
		if !ok {
			latin = strings.ToLower(name)
		}
		out = append(out, part{name, latin})
	}
	return out
}

func placeShares() []float64 {
	shares := make([]float64, len(places))
	for i := range places {
		shares[i] = places[i].share
	}
	return shares
}

// places are where the people of a world come from.
var places = []place{
	{
		share: 0.25, region: "na", between: " ",
		given:  parts("Ava Noah Mia Liam Ella Owen Grace Ethan Ruby Jack Chloe Leo Hazel Sam Nora Max Ivy Theo Maya Finn Lucy Eli Zoe Ben Alice Henry Clara Miles Rose Adam"),
		family: parts("Walker Bennett Hughes Carter Reed Foster Murphy Brooks Hayes Price Sullivan Grant Ellis Ward Perry Shaw Palmer Boyd Fox Lane Marsh Nolan Pierce Quinn Rhodes Stone Tate Vaughn Wells York"),
	},
	{
		share: 0.16, region: "eu", between: " ",
		given:  parts("Lena Jonas Emma Lukas Marie Felix Anna Paul Jürgen/juergen Zoë/zoe Camille Hugo Léa/lea Théo/theo Chiara Luca Sofía/sofia Mateo Inês/ines Tiago Freja Søren/soeren Elin Björn/bjoern Zuzanna Jakub Katarína/katarina Ondřej/ondrej"),
		family: parts("Schneider Fischer Weber Köhler/koehler Müller/mueller Dubois Moreau Lefèvre/lefevre Rossi Bianchi Greco García/garcia Muñoz/munoz Silva Costa Jensen Sørensen/soerensen Lindqvist Nyström/nystroem Nowak Wójcik/wojcik Novák/novak Dvořák/dvorak Horváth/horvath"),
	},
	{
		share: 0.20, region: "ap", familyFirst: true,
		given:  parts("伟/wei 芳/fang 秀英/xiuying 敏/min 静/jing 丽/li 强/qiang 磊/lei 洋/yang 艳/yan 勇/yong 杰/jie 娟/juan 涛/tao 明/ming 超/chao 雨桐/yutong 子涵/zihan 浩然/haoran 欣怡/xinyi 梓萱/zixuan 宇轩/yuxuan 思远/siyuan 佳琪/jiaqi"),
		family: parts("王/wang 李/li 张/zhang 刘/liu 陈/chen 杨/yang 黄/huang 赵/zhao 吴/wu 周/zhou 徐/xu 孙/sun 马/ma 朱/zhu 胡/hu 郭/guo 何/he 高/gao 林/lin 罗/luo 郑/zheng 梁/liang 谢/xie 宋/song"),
	},
	{
		share: 0.09, region: "ap", between: " ", familyFirst: true,
		given:  parts("さくら/sakura 陽菜/hina 結衣/yui 美咲/misaki 蓮/ren 大翔/hiroto 悠真/yuma 健/ken 翔太/shota 直子/naoko 由美/yumi 拓海/takumi"),
		family: parts("佐藤/sato 鈴木/suzuki 高橋/takahashi 田中/tanaka 伊藤/ito 渡辺/watanabe 山本/yamamoto 中村/nakamura 小林/kobayashi 加藤/kato 吉田/yoshida 山田/yamada"),
	},
	{
		share: 0.06, region: "ap", familyFirst: true,
		given:  parts("민준/minjun 서연/seoyeon 지우/jiwoo 하은/haeun 도윤/doyun 수아/sua 예준/yejun 지민/jimin"),
		family: parts("김/kim 이/lee 박/park 최/choi 정/jung 강/kang 조/cho 윤/yoon"),
	},
	{
		share: 0.07, region: "eu", between: " ",
		given:  parts("Анна/anna Дмитрий/dmitry Ольга/olga Иван/ivan Елена/elena Сергей/sergey Оксана/oksana Тарас/taras Мария/maria Алексей/alexey"),
		family: parts("Коваленко/kovalenko Шевченко/shevchenko Мельник/melnyk Бондаренко/bondarenko Кравченко/kravchenko Савченко/savchenko Ткаченко/tkachenko Лысенко/lysenko"),
	},
	{
		share: 0.06, region: "me", between: " ",
		given:  parts("أمينة/amina يوسف/yusuf فاطمة/fatima عمر/omar ليلى/layla كريم/karim نور/nour سامي/sami"),
		family: parts("حداد/haddad منصور/mansour خليل/khalil ناصر/nasser صالح/saleh عباس/abbas فارس/fares زيدان/zidan"),
	},
	{
		share: 0.04, region: "ap", between: " ",
		given:  parts("प्रिया/priya राहुल/rahul अनिता/anita विक्रम/vikram नेहा/neha अर्जुन/arjun कविता/kavita रोहन/rohan"),
		family: parts("शर्मा/sharma पटेल/patel सिंह/singh गुप्ता/gupta मेहता/mehta जोशी/joshi वर्मा/verma मिश्रा/mishra"),
	},
	{
		share: 0.03, region: "ap", between: " ",
		given:  parts("Kavya Rohan Meera Aditya Ananya Farhan Divya Karthik Sanjana Imran"),
		family: parts("Iyer Nair Reddy Kapoor Banerjee Menon Das Rao Khan Pillai"),
	},
	{
		share: 0.04, region: "af", between: " ",
		given:  parts("Adaeze Chidi Amara Kwame Zanele Thabo Wanjiru Kofi Ngozi Sipho"),
		family: parts("Okafor Mensah Adeyemi Dlamini Mwangi Nkosi Boateng Eze Kamau Asante"),
	},
}
