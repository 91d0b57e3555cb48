// GORM: models migrated forth and back, what its migrator finds, associations, upserts, locks, nested transactions.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	. "quorate/drivers/sections"
)

// User has columns of many types, indexes and checks.
type User struct {
	ID      uint           `gorm:"primaryKey"`
	Email   string         `gorm:"size:100;uniqueIndex;not null;comment:where to"`
	Name    *string        `gorm:"index:idx_users_lower,expression:lower(name),where:age > 3"`
	Age     int            `gorm:"default:5;check:age_positive,age > 0"`
	Price   float64        `gorm:"type:numeric(10,2)"`
	Data    string         `gorm:"type:jsonb;default:'{}';index:,type:gin"`
	Tags    string         `gorm:"type:text[];default:'{}'"`
	Key     string         `gorm:"type:uuid;default:gen_random_uuid()"`
	Raw     []byte         `gorm:"type:bytea"`
	Born    time.Time      `gorm:"type:date"`
	Active  bool           `gorm:"default:true"`
	Gone    gorm.DeletedAt `gorm:"index"`
	Posts   []Post         `gorm:"constraint:OnDelete:CASCADE"`
	Profile Profile        `gorm:"constraint:OnUpdate:CASCADE,OnDelete:SET NULL"`
}

// Post belongs to a user.
type Post struct {
	ID     uint64
	UserID uint   `gorm:"uniqueIndex:once"`
	Title  string `gorm:"uniqueIndex:once"`
	Tags   []Tag  `gorm:"many2many:post_tags"`
}

// Profile is a user's one.
type Profile struct {
	ID     uint
	UserID *uint
	Text   string
}

// Tag is of many posts.
type Tag struct {
	Word string `gorm:"primaryKey;size:20"`
}

// Widened is the table of posts later on.
type Widened struct {
	ID     uint64
	UserID uint
	Title  string  `gorm:"type:varchar(300);not null;default:none"`
	Score  float32 `gorm:"index:,sort:desc"`
}

// TableName says that it is the same table.
func (Widened) TableName() string { return "posts" }

var models = []any{&User{}, &Tag{}, &Post{}, &Profile{}}

func schema(db *gorm.DB) error {
	for range 2 {
		if err := db.AutoMigrate(models...); err != nil {
			return err
		}
	}
	look := db.Migrator()
	Say(look.HasTable("users"), look.HasColumn(&User{}, "Age"), look.HasIndex(&User{}, "idx_users_lower"), look.HasConstraint(&User{}, "age_positive"), look.HasTable("nowhere"))
	if err := db.AutoMigrate(&Widened{}); err != nil {
		return err
	}
	for _, table := range []any{&User{}, &Widened{}, &Profile{}} {
		columns, err := look.ColumnTypes(table)
		Tell(err)
		sort.Slice(columns, func(one, other int) bool { return columns[one].Name() < columns[other].Name() })
		for _, column := range columns {
			kind, _ := column.ColumnType()
			length, _ := column.Length()
			precision, scale, _ := column.DecimalSize()
			nullable, _ := column.Nullable()
			unique, _ := column.Unique()
			primary, _ := column.PrimaryKey()
			value, has := column.DefaultValue()
			comment, _ := column.Comment()
			Say(column.Name(), column.DatabaseTypeName(), kind, length, precision, scale, nullable, unique, primary, value, has, comment)
		}
		indexes, err := look.GetIndexes(table)
		Tell(err)
		names := map[string]string{}
		for _, index := range indexes {
			unique, _ := index.Unique()
			primary, _ := index.PrimaryKey()
			names[index.Name()] = fmt.Sprint(index.Columns(), unique, primary)
		}
		Say(names)
	}
	Tell(look.RenameColumn(&Post{}, "score", "points"))
	Tell(look.DropColumn(&Post{}, "points"))
	Tell(look.CreateView("seen", gorm.ViewOption{Query: db.Model(&User{}).Select("id, email"), Replace: true}))
	Tell(look.DropView("seen"))
	Say(look.CurrentDatabase() != "")
	return nil
}

func objects(db *gorm.DB) error {
	name := "Ünï"
	user := User{Email: "a@b", Name: &name, Price: 1.5, Data: `{"a": 1}`, Tags: "{x,y}", Key: "12345678-1234-5678-1234-567812345678", Raw: []byte{0, 255}, Born: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		Posts: []Post{{Title: "t1", Tags: []Tag{{Word: "one"}, {Word: "two"}}}, {Title: "t2"}}, Profile: Profile{Text: "p"}}
	Tell(db.Create(&user).Error)
	var found User
	Tell(db.Preload("Posts.Tags", func(tx *gorm.DB) *gorm.DB { return tx.Order("word") }).Preload("Posts", func(tx *gorm.DB) *gorm.DB { return tx.Order("posts.id") }).Joins("Profile").First(&found, "users.email = ?", "a@b").Error)
	found.Born = found.Born.UTC()
	Say(found)
	Tell(db.Model(&found).Updates(map[string]any{"age": gorm.Expr("age + ?", 2), "name": nil}).Error)
	Say(db.CreateInBatches([]User{{Email: "c@d", Data: "{}"}, {Email: "e@f", Data: "{}"}, {Email: "g@h", Data: "{}"}}, 2).RowsAffected)
	Say(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"age"})}).Create(&User{Email: "c@d", Age: 9, Data: "{}"}).RowsAffected)
	Say(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Tag{Word: "one"}).RowsAffected)
	var returned []User
	Say(db.Model(&returned).Clauses(clause.Returning{Columns: []clause.Column{{Name: "email"}, {Name: "age"}}}).Where("age < ?", 9).Update("age", 1).RowsAffected, len(returned))
	var counts []struct {
		Email string
		N     int
	}
	Tell(db.Model(&User{}).Select("email, count(posts.id) as n").Joins("left join posts on posts.user_id = users.id").Group("email").Order("email").Scan(&counts).Error)
	Say(counts)
	Say(db.Delete(&User{}, "email = ?", "g@h").RowsAffected)
	var live, all int64
	db.Model(&User{}).Count(&live)
	db.Unscoped().Model(&User{}).Count(&all)
	Say(live, all)
	var emails []string
	Tell(db.Model(&User{}).Where("data @> ?", `{"a": 1}`).Or(db.Where("age IN ?", []int{9}).Where("email LIKE ?", "c%")).Order("email").Pluck("email", &emails).Error)
	Say(emails)
	Tell(db.FindInBatches(&[]User{}, 2, func(tx *gorm.DB, batch int) error { Say(batch, tx.RowsAffected); return nil }).Error)
	for _, bad := range []*User{{Email: "a@b", Data: "{}"}, {Email: "x", Age: -1, Data: "{}", Key: user.Key}, {Email: "y", Data: "nonsense"}} {
		Tell(db.Create(bad).Error)
	}
	Tell(db.Exec("insert into posts (user_id, title) values (99, 'orphan')").Error)
	return nil
}

func transactions(db *gorm.DB) error {
	Tell(db.Transaction(func(tx *gorm.DB) error {
		tx.Create(&Tag{Word: "outer"})
		Tell(tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&Tag{Word: "outer"}).Error }))
		tx.SavePoint("sp")
		tx.Create(&Tag{Word: "lost"})
		tx.RollbackTo("sp")
		var words []string
		Tell(tx.Model(&Tag{}).Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("word = ?", "outer").Pluck("word", &words).Error)
		Say(words)
		return errors.New("mine")
	}))
	var words []string
	Tell(db.Model(&Tag{}).Order("word").Pluck("word", &words).Error)
	Say(words)
	return nil
}

func back(db *gorm.DB) error {
	look := db.Migrator()
	Tell(look.DropConstraint(&User{}, "age_positive"))
	Tell(look.DropIndex(&User{}, "idx_users_lower"))
	Tell(look.DropTable("post_tags", &Profile{}, &Post{}, &Tag{}, &User{}))
	tables, err := look.GetTables()
	Say(tables)
	return err
}

func main() {
	db, err := gorm.Open(postgres.Open(URL()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		fmt.Println("!", err)
		os.Exit(1)
	}
	with := func(body func(*gorm.DB) error) func() error { return func() error { return body(db) } }
	Run([]Part{{"schema", with(schema)}, {"objects", with(objects)}, {"transactions", with(transactions)}, {"back", with(back)}})
}
